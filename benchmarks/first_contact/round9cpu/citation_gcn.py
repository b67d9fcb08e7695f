"""Two-layer graph convolution on a citation graph, full batch."""

import torch
import torch.nn.functional as F
from torch import nn

PAPERS, WORDS, FIELDS = 2400, 300, 7


def citation_graph(mean_links=4):
    field = torch.randint(FIELDS, (PAPERS,))
    words = (torch.rand(PAPERS, WORDS) < 0.02).float()
    words[torch.arange(PAPERS), field * 40 + torch.randint(40, (PAPERS,))] = 1.0
    a = torch.randint(PAPERS, (PAPERS * mean_links * 3,))
    b = torch.randint(PAPERS, (len(a),))
    keep = (field[a] == field[b]) | (torch.rand(len(a)) < 0.1)
    return words, field, torch.stack((a[keep], b[keep]))


def normalised_adjacency(edges):
    a = torch.eye(PAPERS)
    a[edges[0], edges[1]] = 1.0
    a[edges[1], edges[0]] = 1.0
    scale = a.sum(1).rsqrt()
    return scale[:, None] * a * scale  # flaw: none-yet(dense-adjacency)


class GraphConv(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(fan_in, fan_out)))
        self.bias = nn.Parameter(torch.zeros(fan_out))

    def forward(self, x, adjacency):
        return adjacency @ (x @ self.weight) + self.bias  # flaw: none-yet(dense-adjacency)


class GCN(nn.Module):
    def __init__(self, hidden=64, dropout=0.5):
        super().__init__()
        self.first = GraphConv(WORDS, hidden)
        self.second = GraphConv(hidden, FIELDS)
        self.dropout = dropout

    def forward(self, x, adjacency):
        x = F.relu(self.first(x, adjacency))
        x = F.dropout(x, self.dropout, self.training)
        return self.second(x, adjacency)


def main():
    torch.manual_seed(0)
    words, field, edges = citation_graph()
    adjacency = normalised_adjacency(edges)
    order = torch.randperm(PAPERS)
    train, valid = order[:400], order[400:1000]
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)
    for epoch in range(250):
        model.train()
        logits = model(words, adjacency)
        loss = F.cross_entropy(logits[train], field[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % 50 == 0:
            model.eval()
            with torch.inference_mode():
                guess = model(words, adjacency)[valid].argmax(1)
            hit = (guess == field[valid]).float().mean().item()
            print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {hit:.3f}")


if __name__ == "__main__":
    main()
