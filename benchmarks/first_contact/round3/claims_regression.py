"""Insurance claims: a deep regression."""
import os
from contextlib import contextmanager
from time import perf_counter

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextmanager
def stopwatch(label):
    began = perf_counter()
    yield
    print(f"{label}: {perf_counter() - began:.1f} s")


class ClaimsNet(nn.Module):
    def __init__(self, columns: int, width: int, depth: int):
        super().__init__()
        self.stem = nn.Linear(columns, width)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(
                nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            )
        self.mean = nn.Linear(width, 1)
        self.spread = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.mean(x).squeeze(-1), F.softplus(self.spread(x)).squeeze(-1) + 1e-3


def fit(columns, width, depth, batch, steps, device):
    torch.manual_seed(17)
    policies = torch.randn(16, batch, columns, device=device)
    paid = policies[..., :4].exp().sum(-1).log()
    model = ClaimsNet(columns, width, depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
    curve = []
    for step in range(steps):
        mean, spread = model(policies[step % 16])  # flaw: fp32-matmul
        miss = paid[step % 16] - mean
        loss = F.mse_loss(mean, paid[step % 16]) + F.l1_loss(spread, miss.detach().abs())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        curve.append(loss.detach())
    return torch.stack(curve).cpu()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape = (16, 32, 2, 16, 30) if os.environ.get("SMALL") == "1" else (256, 1024, 6, 8192, 70)
    with stopwatch("fit"):
        curve = fit(*shape, device)
    print("start", curve[:5].mean().item(), "end", curve[-5:].mean().item())


if __name__ == "__main__":
    main()
