"""Predicts the next mid-price move from windows of order book snapshots."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LEVELS = 10
WINDOW = 60


def read_snapshots(n, seed=11):
    """Rows as a csv reader would give them: lists of floats."""
    g = random.Random(seed)
    mid, rows = 100.0, []
    for _ in range(n):
        mid += g.gauss(0, 0.02)
        row = []
        for level in range(LEVELS):
            row += [mid - 0.01 * level, g.random() * 5, mid + 0.01 * level, g.random() * 5]
        rows.append(row)
    return rows


class Book(Dataset):
    def __init__(self, rows):
        self.rows = torch.tensor(rows)
        mid = torch.tensor([(row[0] + row[2]) / 2 for row in rows])
        move = mid[WINDOW:] - mid[WINDOW - 1 : -1]
        self.label = (move > 0.01).long() - (move < -0.01).long() + 1

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        window = self.rows[i : i + WINDOW]
        return window, self.label[i]


class DeepLob(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm = nn.BatchNorm1d(4 * LEVELS)
        self.conv = nn.Sequential(
            nn.Conv1d(4 * LEVELS, width, 5, padding=2),
            nn.LeakyReLU(),
            nn.Conv1d(width, width, 5, padding=2, stride=2),
            nn.LeakyReLU(),
        )
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.norm(x.transpose(1, 2))
        return self.head(self.conv(x).mean(2))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Book(read_snapshots(12_000)), batch_size=64, shuffle=True)
    model = DeepLob()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(2):
        seen, total = 0, 0.0
        for window, label in loader:
            loss = loss_fn(model(window), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(label)
            seen += len(label)
        print(f"epoch {epoch}: cross entropy {total / seen:.4f}")


if __name__ == "__main__":
    main()
