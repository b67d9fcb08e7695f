"""Probability of default: a residual MLP on numeric and one-hot columns of a loan book."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
big = device.type == "cuda"

LOANS = 200_000 if big else 800
NUMERIC, CATEGORIES = 56, (12, 8, 30, 22)
WIDTH = 1024 if big else 32
BLOCKS = 4 if big else 2
BATCH = 16_384 if big else 64
STEPS = 250 if big else 20


def load_loans(seed=13):
    """Stands in for the query against the warehouse."""
    rng = np.random.default_rng(seed)
    numeric = rng.normal(size=(LOANS, NUMERIC))
    columns = [numeric]
    for levels in CATEGORIES:
        columns.append(np.eye(levels)[rng.integers(levels, size=LOANS)])
    features = np.concatenate(columns, axis=1)
    logit = numeric[:, :8].sum(1) - 2 * columns[1][:, 0] - 1
    default = (rng.random(LOANS) < 1 / (1 + np.exp(-logit))).astype(features.dtype)
    return features, default


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.relu(self.up(self.norm(x)), inplace=True))


class DefaultModel(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.stem = nn.Linear(inputs, WIDTH)
        self.body = nn.Sequential(*[ResidualBlock(WIDTH) for _ in range(BLOCKS)])
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))

    def forward(self, x):
        return self.head(self.body(self.stem(x))).squeeze(-1)


@torch.inference_mode()
def gini(model, x, y):
    scores = torch.cat([model(part) for part in x.split(BATCH)])
    rank = scores.argsort().argsort().to(torch.float32) + 1
    bad = y.sum()
    auc = (rank[y > 0.5].sum() - bad * (bad + 1) / 2) / (bad * (len(y) - bad))
    return 2 * auc.item() - 1


def main():
    torch.manual_seed(13)
    features, default = load_loans()
    x = torch.from_numpy(features).to(device)  # flaw: float64-on-device
    y = torch.from_numpy(default).to(device)  # flaw: float64-on-device
    holdout = LOANS // 5
    model = DefaultModel(x.shape[1]).double().to(device)  # flaw: float64-on-device
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=1e-2, fused=big)

    model.train()
    for step in range(STEPS):
        rows = torch.randint(holdout, LOANS, (BATCH,), device=device)
        loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.4f}")

    model.eval()
    print(f"loss {loss.item():.5f}, gini on hold-out {gini(model, x[:holdout], y[:holdout]):.4f}")


if __name__ == "__main__":
    main()
