"""Self-supervised forecasting of multi-lead ECG: patch the signal, predict the next patch."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()


@dataclass
class Config:
    leads: int = 8
    window: int = 4096 if CUDA else 256
    patch: int = 16
    width: int = 512 if CUDA else 32
    depth: int = 4 if CUDA else 1
    heads: int = 8 if CUDA else 2
    batch: int = 256 if CUDA else 4
    records: int = 400 if CUDA else 8
    record_length: int = 12288 if CUDA else 1024
    steps: int = 180 if CUDA else 5
    workers: int = 14 if CUDA else 0
    lr: float = 3e-4


class ECGWindows(Dataset):
    def __init__(self, cfg: Config):
        rng = np.random.default_rng(0)
        self.cfg = cfg
        self.signals = rng.standard_normal((cfg.records, cfg.leads, cfg.record_length), dtype=np.float32)
        beat = np.sin(np.linspace(0, 2 * np.pi * cfg.record_length / 300, cfg.record_length)) ** 15
        self.signals *= 0.1
        self.signals += beat.astype(np.float32)

    def __len__(self):
        return self.cfg.batch * self.cfg.steps

    def __getitem__(self, index):
        record = self.signals[index % len(self.signals)]
        start = (index * 7919) % (record.shape[-1] - self.cfg.window)
        return torch.from_numpy(record[:, start : start + self.cfg.window])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).unbind(2)
        a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x))


class Forecaster(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.patch = cfg.patch
        token = cfg.leads * cfg.patch
        self.embed = nn.Linear(token, cfg.width)
        self.pos = nn.Parameter(torch.zeros(cfg.window // cfg.patch - 1, cfg.width))
        self.blocks = nn.Sequential(*[Block(cfg.width, cfg.heads) for _ in range(cfg.depth)])
        self.head = nn.Linear(cfg.width, token)

    def forward(self, signal):
        b, leads, n = signal.shape
        tokens = signal.view(b, leads, n // self.patch, self.patch).transpose(1, 2).flatten(2)
        h = self.blocks(self.embed(tokens[:, :-1]) + self.pos)
        return F.mse_loss(self.head(h), tokens[:, 1:])


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.device = torch.device("cuda" if CUDA else "cpu")
        self.model = Forecaster(cfg).to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, fused=CUDA)
        self.loader = DataLoader(
            ECGWindows(cfg), cfg.batch, shuffle=True, drop_last=True, pin_memory=CUDA,
            num_workers=cfg.workers, persistent_workers=cfg.workers > 0,
        )

    def fit(self):
        running = torch.zeros((), device=self.device)
        for step, signal in enumerate(self.loader):
            signal = signal.to(self.device, non_blocking=True)
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                loss = self.model(signal)
            loss.backward()
            self.opt.step()
            self.opt.zero_grad(set_to_none=True)
            running.lerp_(loss.detach(), 0.05)
            if (step + 1) % 60 == 0:
                print(f"step {step + 1}: loss {running.item():.4f}")
        print("finished, loss", round(running.item(), 4))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    Trainer(Config()).fit()
