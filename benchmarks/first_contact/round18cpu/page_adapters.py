"""Fine-tune low-rank adapters of a (pretend pretrained) page encoder for layout classification."""
import os
import sys
import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"


@dataclass
class Config:
    width: int = 32 if TINY else 256
    heads: int = 4
    layers: int = 2 if TINY else 4
    tokens: int = 16 if TINY else 96
    batch: int = 2 if TINY else 5
    rank: int = 4
    steps: int = 6 if TINY else 80
    targets: tuple = field(default=("qkv", "up"))


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.n1, self.n2 = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width)
        self.proj = nn.Linear(cfg.width, cfg.width)
        self.up = nn.Linear(cfg.width, 4 * cfg.width)
        self.down = nn.Linear(4 * cfg.width, cfg.width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class PageEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.patch = nn.Linear(48, cfg.width)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.width)

    def forward(self, patches):
        x = self.patch(patches)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x).mean(1)


class LowRank(nn.Module):
    def __init__(self, inner, rank):
        super().__init__()
        self.inner = inner
        self.lora_a = nn.Parameter(torch.randn(rank, inner.in_features) * 0.02)
        self.lora_b = nn.Parameter(torch.zeros(inner.out_features, rank))

    def forward(self, x):
        return self.inner(x) + F.linear(F.linear(x, self.lora_a), self.lora_b)


def attach(encoder, cfg):
    for layer in encoder.layers:
        for name in cfg.targets:
            setattr(layer, name, LowRank(getattr(layer, name), cfg.rank))
    return encoder


def main(cfg):
    torch.manual_seed(1)
    encoder = attach(PageEncoder(cfg), cfg)  # flaw: wasted-gradient
    head = nn.Linear(cfg.width, 5)
    trained = [p for n, p in encoder.named_parameters() if "lora_" in n] + list(head.parameters())
    optimizer = torch.optim.AdamW(trained, lr=1e-3, fused=True)
    pages = torch.randn(5, cfg.batch, cfg.tokens, 48)
    kinds = torch.randint(5, (5, cfg.batch))
    began = time.perf_counter()
    for step in range(cfg.steps):
        k = step % 5
        loss = F.cross_entropy(head(encoder(pages[k])), kinds[k])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"{(time.perf_counter() - began) / cfg.steps * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"layout loss {loss.item():.3f}")


if __name__ == "__main__":
    main(Config())
