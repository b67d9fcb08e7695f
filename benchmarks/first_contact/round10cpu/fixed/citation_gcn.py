"""Semi-supervised node classification with a graph convolutional network (dense adjacency)."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, features, hidden, classes, dropout=0.5):
        super().__init__()
        self.gc1 = GraphConvolution(features, hidden)
        self.gc2 = GraphConvolution(hidden, classes)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, self.training)
        return self.gc2(x, adj)


def normalize(adj):
    """D^-1/2 (A + I) D^-1/2"""
    adj = adj + torch.eye(adj.shape[0])
    scale = adj.sum(1).rsqrt()
    return scale[:, None] * adj * scale[None, :]


def stochastic_block_graph(nodes, classes, generator):
    labels = torch.randint(classes, (nodes,), generator=generator)
    same = labels[:, None] == labels[None, :]
    probability = torch.where(same, 0.02, 0.002)
    upper = torch.rand(nodes, nodes, generator=generator).lt(probability).triu(1)
    adj = (upper | upper.T).float()
    centers = torch.randn(classes, 64, generator=generator)
    features = centers[labels] + 3 * torch.randn(nodes, 64, generator=generator)
    return features, adj, labels


def main():
    torch.manual_seed(42)
    generator = torch.Generator().manual_seed(42)
    features, adj, labels = stochastic_block_graph(1600, 7, generator)
    adj = normalize(adj)
    permutation = torch.randperm(len(labels), generator=generator)
    train_nodes, test_nodes = permutation[:200], permutation[600:]

    model = GCN(features.shape[1], 32, 7)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

    for epoch in range(300):
        model.train()
        logits = model(features, adj)
        loss = F.cross_entropy(logits[train_nodes], labels[train_nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % 100 == 0:
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

    model.eval()
    with torch.inference_mode():
        predicted = model(features, adj)[test_nodes].argmax(1)
    print(f"test accuracy {(predicted == labels[test_nodes]).float().mean():.3f}")


if __name__ == "__main__":
    main()
