"""GraphSAGE with sampled neighbours on a protein interaction graph."""

import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, FEATURES, LABELS = 8000, 48, 20


class Graph:
    def __init__(self, mean_degree=12):
        group = torch.randint(LABELS, (NODES,))
        order = group.argsort()
        a = torch.randint(NODES, (NODES * mean_degree,))
        b = order[(order.argsort()[a] + torch.randint(-150, 150, a.shape)) % NODES]
        self.source = b[a.argsort()]
        self.degree = torch.bincount(a, minlength=NODES)
        self.start = self.degree.cumsum(0) - self.degree
        self.x = torch.randn(LABELS, FEATURES)[group] * 0.3 + torch.randn(NODES, FEATURES)
        self.y = group

    def neighbours(self, nodes, k):
        degree = self.degree[nodes, None]
        pick = (torch.rand(*nodes.shape, k) * degree).long()
        found = self.source[(self.start[nodes, None] + pick).clamp_(max=len(self.source) - 1)]
        return torch.where(degree > 0, found, nodes[:, None])


class Sage(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.self1, self.near1 = nn.Linear(FEATURES, hidden), nn.Linear(FEATURES, hidden, bias=False)
        self.self2, self.near2 = nn.Linear(hidden, LABELS), nn.Linear(hidden, LABELS, bias=False)

    def layer1(self, x, near):
        return F.relu(self.self1(x) + self.near1(near.mean(-2)))

    def forward(self, x0, x1, x2):
        h0 = self.layer1(x0, x1)
        h1 = self.layer1(x1, x2)
        return self.self2(h0) + self.near2(h1.mean(-2))


def fetch(graph, seeds, k1=8, k2=6):
    one = graph.neighbours(seeds, k1)
    two = graph.neighbours(one.flatten(), k2).view(len(seeds), k1, k2)
    return graph.x[seeds], graph.x[one], graph.x[two]


def main(epochs=45, batch=512):
    torch.manual_seed(0)
    graph = Graph()
    model = Sage()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    order = torch.randperm(NODES)
    train, test = order[:7000], order[7000:]
    for epoch in range(epochs):
        model.train()
        for seeds in train[torch.randperm(len(train))].split(batch):
            loss = F.cross_entropy(model(*fetch(graph, seeds)), graph.y[seeds])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            guess = model(*fetch(graph, test)).argmax(1)
        hit = (guess == graph.y[test]).float().mean().item()
        if epoch % 5 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} accuracy {hit:.4f}")


if __name__ == "__main__":
    main()
