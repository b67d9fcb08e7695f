"""A graph transformer on dense adjacency, in a trainer class with train() and evaluate()."""
import torch
from torch import nn
from torch.nn import functional as F


class GraphLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Linear(dim, dim)
        self.update = nn.Sequential(nn.LayerNorm(2 * dim), nn.Linear(2 * dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, h, adj):
        m = adj @ self.message(h)
        return h + self.update(torch.cat((h, m), dim=-1))


class GraphNet(nn.Module):
    def __init__(self, inputs, dim, classes, depth):
        super().__init__()
        self.inp, self.out = nn.Linear(inputs, dim), nn.Linear(dim, classes)
        self.layers = nn.ModuleList([GraphLayer(dim) for _ in range(depth)])

    def forward(self, x, adj):
        h = self.inp(x)
        for layer in self.layers:
            h = layer(h, adj)
        return self.out(h)


class Experiment:
    def __init__(self, nodes=8192, dim=512):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = GraphNet(128, dim, 40, 3).to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-3, fused=True)
        self.x = torch.randn(nodes, 128, device=self.device)
        links = (torch.rand(nodes, nodes, device=self.device) < 0.05).float()
        self.adj = links / links.sum(1, keepdim=True).clamp(min=1)
        self.y = torch.randint(40, (nodes,), device=self.device)

    def compute_loss(self):
        scores = self.model(self.x, self.adj)  # flaw: fp32-matmul
        return F.cross_entropy(scores, self.y)  # flaw: fp32-matmul

    def train(self, steps):
        for _ in range(steps):
            loss = self.compute_loss()  # flaw: fp32-matmul
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()


if __name__ == "__main__":
    print(Experiment().train(320))
