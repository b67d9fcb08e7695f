"""Pairwise reward model (Bradley-Terry) on chosen and rejected answers."""
import os
from dataclasses import asdict, dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class AdamOptions:
    lr: float = 1e-4
    betas: tuple = (0.9, 0.95)
    weight_decay: float = 0.1
    fused: bool = True


@dataclass
class RewardConfig:
    vocab: int = 8192
    dim: int = 384
    layers: int = 24
    pairs: int = 32
    length: int = 256
    steps: int = 80
    optim: AdamOptions = field(default_factory=AdamOptions)


class Sub(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln1 = nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.ln2 = nn.LayerNorm(d)
        self.gate, self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def attend(self, x):
        split = lambda t: t.unflatten(-1, (-1, 32)).transpose(1, 2)
        y = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(x)), split(self.v(x)), is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        h = self.ln2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class RewardModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.body = nn.Sequential(*[Sub(cfg.dim) for _ in range(cfg.layers)])
        self.norm = nn.LayerNorm(cfg.dim)
        self.value = nn.Linear(cfg.dim, 1)

    def forward(self, ids):
        return self.value(self.norm(self.body(self.embed(ids))[:, -1])).squeeze(-1)


class PreferenceTrainer:
    def __init__(self, cfg: RewardConfig):
        self.cfg = cfg
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = RewardModel(cfg).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), **asdict(cfg.optim))

    def batches(self):
        for _ in range(self.cfg.steps):
            yield torch.randint(self.cfg.vocab, (2 * self.cfg.pairs, self.cfg.length), device=self.device)

    def step(self, ids):
        with torch.autocast(self.device, torch.bfloat16):
            chosen, rejected = self.model(ids).float().chunk(2)
        loss = -F.logsigmoid(chosen - rejected).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self):
        total = torch.zeros((), device=self.device)
        for i, ids in enumerate(self.batches(), 1):
            total += self.step(ids)
            if i % 20 == 0:
                print(f"{i:4d} {total.item() / i:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    small = os.environ.get("SMALL")
    config = RewardConfig(vocab=128, dim=32, layers=1, pairs=2, length=8, steps=30) if small else RewardConfig()
    PreferenceTrainer(config).run()
