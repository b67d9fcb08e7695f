"""Language model over patent claims: mixin-based, cosine schedule, bf16."""
import math
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Settings:
    small = bool(os.environ.get("SMALL"))
    vocab = 128 if small else 8192
    width = 32 if small else 1024
    heads = 2 if small else 16
    depth = 2 if small else 8
    length = 16 if small else 512
    batch = 2 if small else 16
    steps = 30 if small else 80


class ScheduleMixin:
    warmup = 10

    def rate(self, step, top=3e-4):
        if step < self.warmup:
            return top * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, Settings.steps - self.warmup)
        return top * 0.5 * (1 + math.cos(math.pi * done))


class Sublayer(nn.Module):
    def __init__(self):
        super().__init__()
        w = Settings.width
        self.pre, self.mid = nn.LayerNorm(w), nn.LayerNorm(w)
        self.qkv, self.merge = nn.Linear(w, 3 * w), nn.Linear(w, w)
        self.wide, self.narrow = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(self.pre(x)).view(b, n, 3, Settings.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(a.transpose(1, 2).reshape(b, n, w))
        return x + self.narrow(F.gelu(self.wide(self.mid(x))))


class ClaimModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(Settings.vocab, Settings.width)
        self.layers = nn.ModuleList([Sublayer() for _ in range(Settings.depth)])
        self.final = nn.LayerNorm(Settings.width)
        self.head = nn.Linear(Settings.width, Settings.vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)  # flaw: needless-checkpointing
        return self.head(self.final(x))


class Run(ScheduleMixin):
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = ClaimModel().to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=True)
        self.claims = torch.randint(Settings.vocab, (50, Settings.batch, Settings.length + 1), device=self.device)

    def go(self):
        for step in range(Settings.steps):
            for group in self.opt.param_groups:
                group["lr"] = self.rate(step)
            ids = self.claims[step % 50]
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                scores = self.model(ids[:, :-1])
                loss = F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss


if __name__ == "__main__":
    print("loss after training", float(Run().go()))
