"""Default probability from a wide table of numeric features."""

import numpy as np
import torch
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
ROWS, COLS = (200_000, 256) if CUDA else (400, 12)
WIDTH, DEPTH = (2048, 4) if CUDA else (16, 2)
BATCH, EPOCHS = (16_384, 10) if CUDA else (100, 2)


def load_table():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((ROWS, COLS))
    weights = rng.standard_normal(COLS) / np.sqrt(COLS)
    y = (x @ weights + 0.3 * rng.standard_normal(ROWS) > 0.8).astype(np.float64)
    mean, std = x.mean(0), x.std(0)
    return (x - mean) / std, y


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(self.norm(x))))


class ScoreNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(COLS, WIDTH)
        self.blocks = nn.Sequential(*(ResidualBlock(WIDTH) for _ in range(DEPTH)))
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.out(self.blocks(self.stem(x))).squeeze(-1)


def main():
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    x, y = load_table()
    features = torch.from_numpy(x).float().to(DEVICE)
    labels = torch.from_numpy(y).float().to(DEVICE)
    model = ScoreNet().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=1e-2, fused=CUDA)
    criterion = nn.BCEWithLogitsLoss()

    for epoch in range(EPOCHS):
        order = torch.randperm(ROWS, device=DEVICE)
        total = torch.zeros((), device=DEVICE)
        batches = ROWS // BATCH
        for i in range(batches):
            rows = order[i * BATCH : (i + 1) * BATCH]
            loss = criterion(model(features[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            total += loss.detach()
        print(f"epoch {epoch} loss {total.item() / batches:.4f}")


if __name__ == "__main__":
    main()
