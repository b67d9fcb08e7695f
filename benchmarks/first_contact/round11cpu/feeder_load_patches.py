"""Day-ahead load of distribution feeders with a patch transformer."""

import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class PatchConfig:
    history: int = 672
    patch: int = 16
    horizon: int = 24
    dim: int = 96
    heads: int = 4
    depth: int = 2

    @property
    def patches(self) -> int:
        return self.history // self.patch


class Feeders:
    def __init__(self, feeders: int, hours: int, seed: int):
        gen = torch.Generator().manual_seed(seed)
        hour = torch.arange(hours)
        day = torch.sin(2 * math.pi * hour / 24 + torch.rand(feeders, 1, generator=gen))
        week = torch.cos(2 * math.pi * hour / 168 + torch.rand(feeders, 1, generator=gen))
        size = 0.5 + torch.rand(feeders, 1, generator=gen)
        self.load = size * (day + 0.5 * week) + 0.1 * torch.randn(feeders, hours, generator=gen)

    def windows(self, cfg: PatchConfig) -> Tensor:
        return self.load.unfold(1, cfg.history + cfg.horizon, 24).flatten(0, 1)


class Attend(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class PatchLayer(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attend = Attend(dim, heads)
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm_a(x))
        return x + self.feed(self.norm_b(x))


class PatchForecaster(nn.Module):
    def __init__(self, cfg: PatchConfig):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Linear(cfg.patch, cfg.dim)
        self.place = nn.Parameter(0.02 * torch.randn(cfg.patches, cfg.dim))
        self.layers = nn.Sequential(*[PatchLayer(cfg.dim, cfg.heads) for _ in range(cfg.depth)])
        self.out = nn.Linear(cfg.patches * cfg.dim, cfg.horizon)

    def forward(self, history: Tensor) -> Tensor:
        x = self.embed(history.unflatten(1, (self.cfg.patches, self.cfg.patch))) + self.place
        return self.out(self.layers(x).flatten(1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=520)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(150)
    cfg = PatchConfig()
    windows = Feeders(feeders=20, hours=24 * 120, seed=151).windows(cfg)
    model = PatchForecaster(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    for update in range(1, args.updates + 1):
        window = windows[torch.randint(len(windows), (args.batch,))]
        loss = F.l1_loss(model(window[:, : cfg.history]), window[:, cfg.history :])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 130 == 0:
            print(f"update {update}: absolute error {loss.item():.4f}")


if __name__ == "__main__":
    main()
