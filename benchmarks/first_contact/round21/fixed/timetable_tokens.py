"""Autoregressive model of railway timetables: a train's run is a sequence of (station, delay, platform) tokens."""
from __future__ import annotations

import dataclasses
import time
from typing import Callable, Dict

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class ModelConfig:
    vocabulary: int = 4096
    length: int = 512
    width: int = 1024
    heads: int = 16
    layers: int = 4
    expansion: float = 3.3


@dataclasses.dataclass
class TrainConfig:
    batch: int = 32
    steps: int = 650
    lr: float = 3e-4
    warmup: int = 50
    decay: float = 0.1
    runs: int = 4096
    log_every: int = 65
    seed: int = 1863


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.heads = cfg.heads
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width, bias=False)
        self.proj = nn.Linear(cfg.width, cfg.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        hidden = -(-round(cfg.width * cfg.expansion) // 8) * 8
        self.up = nn.Linear(cfg.width, hidden, bias=False)
        self.act = nn.GELU()
        self.down = nn.Linear(hidden, cfg.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.act(self.up(x)))


class Block(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.norm_a, self.norm_f = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.attention, self.feed = CausalSelfAttention(cfg), FeedForward(cfg)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_a(x))
        return x + self.feed(self.norm_f(x))


class TimetableModel(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(cfg.vocabulary, cfg.width)
        self.position = nn.Parameter(torch.zeros(cfg.length, cfg.width))
        self.blocks = nn.Sequential(*(Block(cfg) for _ in range(cfg.layers)))
        self.norm = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.vocabulary, bias=False)
        self.apply(self._init)

    @staticmethod
    def _init(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        hidden = self.norm(self.blocks(self.token(tokens) + self.position))
        return F.cross_entropy(self.head(hidden).flatten(0, 1), targets.flatten())


def make_runs(model: ModelConfig, train: TrainConfig, device: torch.device) -> torch.Tensor:
    """Trains follow one of 64 lines; a line is a fixed walk over the stations, with random delays."""
    g = torch.Generator().manual_seed(train.seed)
    lines = torch.randint(model.vocabulary, (64, model.length + 1), generator=g)
    chosen = torch.randint(64, (train.runs,), generator=g)
    runs = lines[chosen]
    delayed = torch.rand(runs.shape, generator=g) < 0.2
    return torch.where(delayed, torch.randint(model.vocabulary, runs.shape, generator=g), runs).to(device)


class Trainer:
    def __init__(self, model_cfg: ModelConfig, cfg: TrainConfig) -> None:
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.runs = make_runs(model_cfg, cfg, self.device)
        self.model = TimetableModel(model_cfg).to(self.device)
        wide = [p for p in self.model.parameters() if p.ndim > 1]
        thin = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": wide, "weight_decay": cfg.decay}, {"params": thin, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=cfg.lr, betas=(0.9, 0.95), fused=True)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda s: min(1.0, (s + 1) / cfg.warmup))
        self.listeners: Dict[str, Callable[[int, torch.Tensor], None]] = {}

    def fit(self) -> None:
        order = torch.Generator(device=self.device).manual_seed(self.cfg.seed)
        for step in range(1, self.cfg.steps + 1):
            rows = torch.randint(len(self.runs), (self.cfg.batch,), generator=order, device=self.device)
            batch = self.runs[rows]
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                loss = self.model(batch[:, :-1], batch[:, 1:])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            if step % self.cfg.log_every == 0:
                for listener in self.listeners.values():
                    listener(step, loss.detach())


if __name__ == "__main__":
    started = time.monotonic()
    trainer = Trainer(ModelConfig(), TrainConfig())
    trainer.listeners["print"] = lambda s, l: print(f"{s:5d} loss {l.item():.4f} ({time.monotonic() - started:.0f} s)")
    trainer.fit()
