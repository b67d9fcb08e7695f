"""Tabular ResNet on customer churn; everything stays in memory as tensors."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    rows: int = 60_000
    numeric: int = 24
    cards: tuple = (12, 7, 50, 4)
    width: int = 128
    blocks: int = 3
    batch: int = 512
    epochs: int = 5
    lr: float = 1e-3


class TabResNet(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(c, 8) for c in s.cards)
        self.inp = nn.Linear(s.numeric + 8 * len(s.cards), s.width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm1d(s.width),
                nn.Linear(s.width, 2 * s.width),
                nn.ReLU(),
                nn.Linear(2 * s.width, s.width),
            )
            for _ in range(s.blocks)
        )
        self.out = nn.Linear(s.width, 1)

    def forward(self, numeric, category):
        parts = [e(c) for e, c in zip(self.embeds, category.unbind(1))]
        x = self.inp(torch.cat([numeric, *parts], 1))
        for block in self.blocks:
            x = x + block(x)
        return self.out(x).squeeze(1)


def customers(s):
    numeric = torch.randn(s.rows, s.numeric)
    category = torch.stack([torch.randint(c, (s.rows,)) for c in s.cards], 1)
    score = numeric[:, 0] * numeric[:, 1] + (category[:, 2] % 3 == 0) - 0.5
    return numeric, category, (torch.rand(s.rows) < score.sigmoid()).float()


def auc(score, label):
    rank = score.argsort().argsort().float() + 1
    positive = label.sum()
    negative = len(label) - positive
    return (((rank * label).sum() - positive * (positive + 1) / 2) / (positive * negative)).item()


def main():
    s = Settings()
    torch.manual_seed(0)
    numeric, category, churn = customers(s)
    split = int(0.85 * s.rows)
    model = TabResNet(s)
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr, fused=True)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(s.epochs):
        model.train()
        total = torch.zeros(())
        for index in torch.randperm(split).split(s.batch):
            loss = criterion(model(numeric[index], category[index]), churn[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(index)
        model.eval()
        with torch.inference_mode():
            score = model(numeric[split:], category[split:])
        print(f"epoch {epoch} loss {total.item() / split:.4f} auc {auc(score, churn[split:]):.4f}")


if __name__ == "__main__":
    main()
