"""Rectified flow on image latents with a plain transformer, averaged weights and a warm-up."""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass
class FlowConfig:
    side: int = 32
    channels: int = 4
    patch: int = 2
    dim: int = 768
    depth: int = 12
    classes: int = 1000
    batch: int = 64
    steps: int = 70
    warmup: int = 20
    decay: float = 0.999


class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.heads = dim // 64
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, 64).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class FlowTransformer(nn.Module):
    def __init__(self, cfg: FlowConfig):
        super().__init__()
        self.cfg = cfg
        token = cfg.channels * cfg.patch**2
        self.inp, self.out = nn.Linear(token, cfg.dim), nn.Linear(cfg.dim, token)
        self.pos = nn.Parameter(torch.randn(1, (cfg.side // cfg.patch) ** 2, cfg.dim) * 0.02)
        self.label = nn.Embedding(cfg.classes, cfg.dim)
        self.time = nn.Sequential(nn.Linear(256, cfg.dim), nn.SiLU(), nn.Linear(cfg.dim, cfg.dim))
        self.blocks = nn.Sequential(*[Block(cfg.dim) for _ in range(cfg.depth)])
        self.norm = nn.LayerNorm(cfg.dim)
        self.register_buffer("freqs", 1000 * torch.exp(-math.log(10000) * torch.arange(128) / 128))

    def forward(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        p = self.cfg.patch
        angle = t[:, None] * self.freqs
        c = self.time(torch.cat([angle.cos(), angle.sin()], dim=1)) + self.label(label)
        x = self.inp(F.pixel_unshuffle(x, p).flatten(2).transpose(1, 2)) + self.pos + c[:, None]
        x = self.out(self.norm(self.blocks(x))).transpose(1, 2)
        return F.pixel_shuffle(x.unflatten(2, (self.cfg.side // p, -1)), p)


class FlowTrainer:
    def __init__(self, cfg: FlowConfig, device: torch.device):
        self.cfg, self.device = cfg, device
        self.net = FlowTransformer(cfg).to(device)
        self.average = copy.deepcopy(self.net).requires_grad_(False)
        self.weights, self.averaged = list(self.net.parameters()), list(self.average.parameters())
        self.optimizer = torch.optim.AdamW(self.weights, lr=1e-4, weight_decay=0.0, fused=True)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda i: min(1.0, (i + 1) / cfg.warmup))
        shape = (16 * cfg.batch, cfg.channels, cfg.side, cfg.side)
        self.latents = torch.randn(shape, device=device)
        self.labels = torch.randint(0, cfg.classes, (len(self.latents),), device=device)

    def loss(self) -> Tensor:
        pick = torch.randint(0, len(self.latents), (self.cfg.batch,), device=self.device)
        clean = self.latents[pick]
        noise = torch.randn_like(clean)
        t = torch.randn(len(clean), device=self.device).sigmoid()
        mixed = torch.lerp(clean, noise, t[:, None, None, None])
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            velocity = self.net(mixed, t, self.labels[pick])
        return F.mse_loss(velocity.float(), noise - clean)

    def fit(self):
        for step in range(self.cfg.steps):
            loss = self.loss()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            torch._foreach_lerp_(self.averaged, self.weights, 1 - self.cfg.decay)
            if step % 20 == 0:
                print(f"step {step:4d}  flow loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    if torch.cuda.is_available():
        FlowTrainer(FlowConfig(), torch.device("cuda")).fit()
    else:
        FlowTrainer(FlowConfig(side=8, dim=64, depth=1, batch=2, steps=3), torch.device("cpu")).fit()
