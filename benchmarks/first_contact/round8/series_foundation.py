"""A decoder-only foundation model for time series: patches in, next patches out."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class ModelConfig:
    patch: int = 32
    patches: int = 512
    dim: int = 768
    heads: int = 12
    layers: int = 10
    ff: int = 2048


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        h = x.float()  # flaw: hand-written-norm
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)  # flaw: hand-written-norm
        return h.type_as(x) * self.weight  # flaw: hand-written-norm


class CausalAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.wqkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.wo = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.q_norm = RMSNorm(cfg.dim // cfg.heads)
        self.k_norm = RMSNorm(cfg.dim // cfg.heads)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.wqkv(x).view(b, t, 3, self.heads, d // self.heads).unbind(2)
        q, k = self.q_norm(q).to(v.dtype), self.k_norm(k).to(v.dtype)
        q, k, v = (z.transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class DecoderLayer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.attn_norm = RMSNorm(cfg.dim)
        self.attn = CausalAttention(cfg)
        self.mlp_norm = RMSNorm(cfg.dim)
        self.up = nn.Linear(cfg.dim, cfg.ff, bias=False)
        self.down = nn.Linear(cfg.ff, cfg.dim, bias=False)

    def forward(self, x):
        x = x + self.attn(self.attn_norm(x))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class SeriesModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Linear(cfg.patch, cfg.dim)
        self.position = nn.Parameter(torch.randn(cfg.patches, cfg.dim) * 0.02)
        self.layers = nn.ModuleList(DecoderLayer(cfg) for _ in range(cfg.layers))
        self.norm = RMSNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.patch)

    def forward(self, patches):
        x = self.embed(patches) + self.position[: patches.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def random_series(count, length, device):
    t = torch.linspace(0, 1, length, device=device)
    rate = 3 + 200 * torch.rand(count, 4, 1, device=device)
    tones = torch.sin(6.283 * (rate * t + torch.rand_like(rate))).sum(1)
    series = tones + torch.randn(count, length, device=device).cumsum(-1) * 0.02
    return F.layer_norm(series, (length,))


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    cfg = ModelConfig() if cuda else ModelConfig(patch=4, patches=12, dim=32, heads=2, layers=2, ff=64)
    batch, steps = (32, 110) if cuda else (3, 12)

    corpus = random_series(512 if cuda else 12, cfg.patch * (cfg.patches + 1), device).unflatten(1, (-1, cfg.patch))
    model = SeriesModel(cfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05, fused=cuda)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-4, total_steps=steps)

    for step in range(steps):
        rows = torch.randint(len(corpus), (batch,), device=device)
        patches = corpus[rows]
        with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
            loss = F.mse_loss(model(patches[:, :-1]).float(), patches[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            print(f"{step} {loss.item():.5f}")
    print(f"last {loss.item():.5f}")


if __name__ == "__main__":
    main()
