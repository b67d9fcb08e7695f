import os
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    small: bool = field(default_factory=lambda: bool(int(os.environ.get("SMALL", "0"))))
    vocab: int = 16384
    width: int = 768
    depth: int = 6
    heads: int = 12
    seq: int = 512
    batch: int = 16
    steps: int = 90
    smoothing: float = 0.1

    def __post_init__(self):
        if self.small:
            self.vocab, self.width, self.depth, self.heads = 512, 64, 2, 2
            self.seq, self.batch, self.steps = 32, 4, 30


class Layer(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.h = c.heads
        self.norm_a = nn.RMSNorm(c.width)
        self.qkv = nn.Linear(c.width, 3 * c.width, bias=False)
        self.proj = nn.Linear(c.width, c.width, bias=False)
        self.norm_m = nn.RMSNorm(c.width)
        self.up = nn.Linear(c.width, 4 * c.width)
        self.down = nn.Linear(4 * c.width, c.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm_a(x)).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_m(x))))


class Translator(nn.Module):
    """Prefix-style translator: source and target share one causal sequence."""

    def __init__(self, c: Config):
        super().__init__()
        self.words = nn.Embedding(c.vocab, c.width)
        self.places = nn.Embedding(c.seq, c.width)
        self.layers = nn.Sequential(*[Layer(c) for _ in range(c.depth)])
        self.norm = nn.RMSNorm(c.width)
        self.register_buffer("index", torch.arange(c.seq), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(self.index)
        x = self.norm(self.layers(x))
        return F.linear(x, self.words.weight)


class SmoothedObjective(nn.Module):
    def __init__(self, eps: float):
        super().__init__()
        self.eps = eps

    def forward(self, scores: torch.Tensor, gold: torch.Tensor) -> torch.Tensor:
        scores = scores.float()
        peak = scores.detach().amax(dim=-1, keepdim=True)  # flaw: hand-written-loss
        log_z = (scores - peak).exp().sum(dim=-1, keepdim=True).log() + peak  # flaw: hand-written-loss
        log_p = scores - log_z  # flaw: hand-written-loss
        hit = log_p.gather(-1, gold.unsqueeze(-1)).squeeze(-1)  # flaw: hand-written-loss
        spread = log_p.mean(dim=-1)  # flaw: hand-written-loss
        return -((1 - self.eps) * hit + self.eps * spread).mean()  # flaw: hand-written-loss


def pairs(c: Config, device: torch.device):
    g = torch.Generator(device=device).manual_seed(11)
    while True:
        ids = torch.randint(0, c.vocab, (c.batch, c.seq + 1), device=device, generator=g)
        yield ids[:, :-1], ids[:, 1:]


def run() -> None:
    c = Config()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Translator(c).to(device)
    objective = SmoothedObjective(c.smoothing)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
    for step, (source, target) in zip(range(c.steps), pairs(c, device)):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(source)
        loss = objective(scores, target)
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if (step + 1) % 30 == 0:
            print("step", step + 1, "loss", round(loss.item(), 4))


run()
