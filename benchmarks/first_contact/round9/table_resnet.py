"""ResNet for tables (Gorishniy et al.): wide rows that stay in host memory, block-shuffled."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"

COLUMNS = 256 if on_gpu else 16
BLOCK = 65_536 if on_gpu else 64
BLOCKS = 8 if on_gpu else 4
EPOCHS = 30 if on_gpu else 3
WIDTH, HIDDEN, DEPTH = (1024, 1024, 3) if on_gpu else (16, 32, 2)


class ResidualBlock(nn.Module):
    def __init__(self, width, hidden, dropout):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.linear_in = nn.Linear(width, hidden)
        self.linear_out = nn.Linear(hidden, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        z = F.relu(self.linear_in(self.norm(x)), inplace=True)
        return x + self.linear_out(self.dropout(z))


class TableResNet(nn.Module):
    def __init__(self, columns, width, hidden, depth, dropout=0.1):
        super().__init__()
        self.first = nn.Linear(columns, width)
        self.blocks = nn.Sequential(*[ResidualBlock(width, hidden, dropout) for _ in range(depth)])
        self.last = nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(inplace=True), nn.Linear(width, 1))

    def forward(self, x):
        return self.last(self.blocks(self.first(x))).squeeze(-1)


def load_table(seed):
    """A standardised table and a regression target; its rows repeat with small variations."""
    g = torch.Generator().manual_seed(seed)
    base = torch.rand(BLOCK, COLUMNS, generator=g).sub_(0.5).mul_(3.46)
    weight = torch.randn(COLUMNS, generator=g)
    features = torch.empty(BLOCKS * BLOCK, COLUMNS)
    for i in range(BLOCKS):
        torch.mul(base, 1.0 + 0.05 * i, out=features[i * BLOCK : (i + 1) * BLOCK])
    target = torch.sin(features @ weight / COLUMNS**0.5)
    return features, target  # flaw: pageable-host-copy


def batches(features, target, rng):
    for block in rng.permutation(BLOCKS):
        rows = slice(block * BLOCK, (block + 1) * BLOCK)
        x = features[rows].to(device)  # flaw: pageable-host-copy
        y = target[rows].to(device)  # flaw: pageable-host-copy
        order = torch.randperm(BLOCK, device=device)
        yield x[order], y[order]


def fit(model, features, target):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-5, fused=on_gpu)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * BLOCKS)
    rng = np.random.default_rng(0)
    for epoch in range(EPOCHS):
        total = torch.zeros((), device=device)
        for x, y in batches(features, target, rng):
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=on_gpu):
                prediction = model(x)
            loss = F.mse_loss(prediction.float(), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
            total += loss.detach()
        if epoch % 8 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch}: rmse {(total / BLOCKS).sqrt().item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    fit(TableResNet(COLUMNS, WIDTH, HIDDEN, DEPTH).to(device), *load_table(seed=5))
