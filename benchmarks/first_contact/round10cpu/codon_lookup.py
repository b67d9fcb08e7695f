"""Expression level of genes from their codons: a table per codon, then a convolution."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CODONS = 1024
LENGTH = 64


class CodonTable(nn.Module):
    def __init__(self, codons, width):
        super().__init__()
        self.codons = codons
        self.table = nn.Parameter(0.1 * torch.randn(codons, width))

    def forward(self, genes):
        codes = F.one_hot(genes, self.codons).float()  # flaw: none-yet(one-hot-matmul)
        return codes @ self.table  # flaw: none-yet(one-hot-matmul)


class ExpressionModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.codons = CodonTable(CODONS, width)
        self.conv1 = nn.Conv1d(width, 64, 5, padding=2)
        self.conv2 = nn.Conv1d(64, 64, 5, padding=2)
        self.out = nn.Linear(64, 1)

    def forward(self, genes):
        x = self.codons(genes).transpose(1, 2)
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.out(x.mean(-1)).squeeze(-1)


def make_genes(count, generator):
    genes = torch.randint(CODONS, (count, LENGTH), generator=generator)
    bias = torch.randn(CODONS, generator=generator)
    level = bias[genes].mean(1) * 8
    return genes, level + 0.1 * torch.randn(count, generator=generator)


def epochs(genes, level, count, batch):
    for epoch in range(count):
        for i in torch.randperm(len(genes)).split(batch):
            yield epoch, genes[i], level[i]


def main():
    torch.manual_seed(0)
    genes, level = make_genes(3200, torch.Generator().manual_seed(0))
    model = ExpressionModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    last = 0
    for epoch, g, y in epochs(genes, level, count=2, batch=64):
        loss = F.mse_loss(model(g), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch != last:
            print(f"epoch {last} done, loss {loss.item():.4f}")
            last = epoch
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
