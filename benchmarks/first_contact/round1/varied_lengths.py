"""Sentences of many lengths through a compiled mixer."""
import random

import torch
import torch.nn as nn


class Mixer(nn.Module):
    def __init__(self, dim=768):
        super().__init__()
        self.a, self.b = nn.Linear(dim, 3 * dim), nn.Linear(3 * dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        x = x + self.b(nn.functional.silu(self.a(self.norm(x))))
        return x + x.mean(1, keepdim=True)


class Setup:
    def __init__(self, compiled=True):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = nn.Sequential(Mixer(), Mixer(), nn.Linear(768, 768)).to(self.device)
        self.call = torch.compile(self.net, dynamic=False) if compiled else self.net  # flaw: recompilation
        self.opt = torch.optim.AdamW(self.net.parameters(), 1e-4, fused=True)

    def batches(self, n):
        rng = random.Random(0)
        for _ in range(n):
            yield torch.randn(64, 8 * rng.randint(16, 40), 768, device=self.device)

    def go(self, n):
        for x in self.batches(n):
            with torch.autocast(self.device, torch.bfloat16):
                loss = nn.functional.mse_loss(self.call(x).float(), x)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


Setup().go(500)
