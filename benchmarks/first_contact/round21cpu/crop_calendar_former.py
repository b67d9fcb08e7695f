"""Crop type from a year of satellite passes: a transformer over dates, trained by a small class-based trainer."""
import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Config:
    dates: int = 144
    bands: int = 10
    crops: int = 8
    dim: int = 64
    heads: int = 4
    depth: int = 2
    batch: int = 24
    fields: int = 3000
    lr: float = 1e-3
    steps: int = 380
    seed: int = 77


class DateMixer(nn.Module):
    """Every date looks at every other."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.temperature = (dim // heads) ** 0.5
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.to_qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        affinity = torch.einsum("bihd,bjhd->bhij", q, k) / self.temperature  # flaw: hand-written-attention
        affinity = affinity.softmax(dim=-1)  # flaw: hand-written-attention
        mixed = torch.einsum("bhij,bjhd->bihd", affinity, v)  # flaw: hand-written-attention
        return self.to_out(mixed.flatten(2))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.mixer = nn.LayerNorm(dim), DateMixer(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.mixer(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class CropFormer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.bands = nn.Linear(cfg.bands, cfg.dim)
        self.calendar = nn.Parameter(0.02 * torch.randn(cfg.dates, cfg.dim))
        self.layers = nn.Sequential(*[Layer(cfg.dim, cfg.heads) for _ in range(cfg.depth)])
        self.head = nn.Sequential(nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, cfg.crops))

    def forward(self, x):
        return self.head(self.layers(self.bands(x) + self.calendar).mean(1))


def seasons(cfg):
    """Green-up and harvest, different for each crop, seen through clouds."""
    g = torch.Generator().manual_seed(cfg.seed)
    crop = torch.randint(cfg.crops, (cfg.fields,), generator=g)
    day = torch.linspace(0, 1, cfg.dates)
    start = 0.15 + 0.06 * crop + 0.04 * torch.randn(cfg.fields, generator=g)
    end = start + 0.3 + 0.03 * (crop % 3) + 0.04 * torch.randn(cfg.fields, generator=g)
    green = torch.sigmoid((day - start[:, None]) * 40) * torch.sigmoid((end[:, None] - day) * 40)
    spectrum = torch.rand(2, cfg.bands, generator=g)
    x = green[..., None] * spectrum[0] + (1 - green[..., None]) * spectrum[1]
    cloud = (torch.rand(cfg.fields, cfg.dates, 1, generator=g) < 0.3).float()
    return x * (1 - cloud) + cloud + 0.1 * torch.randn(x.shape, generator=g), crop


class Trainer:
    def __init__(self, cfg):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.x, self.y = seasons(cfg)
        self.model = CropFormer(cfg)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, fused=True)
        self.history = torch.zeros(cfg.steps)

    def batch(self):
        rows = torch.randint(len(self.x), (self.cfg.batch,))
        return self.x[rows], self.y[rows]

    def training_step(self):
        x, y = self.batch()
        loss = F.cross_entropy(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()

    def fit(self):
        for step in range(self.cfg.steps):
            self.history[step] = self.training_step()
            if (step + 1) % 38 == 0:
                print(f"{step + 1:>5}/{self.cfg.steps} loss {self.history[step - 37 : step + 1].mean():.4f}")
        return self


if __name__ == "__main__":
    Trainer(Config()).fit()
