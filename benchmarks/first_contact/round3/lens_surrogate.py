"""Surrogate for a lens simulator: parameters in, point spread function out."""
import os
import time
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Phases:
    seconds: dict = field(default_factory=dict)

    def mark(self, name, since):
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # flaw: synchronize-in-step
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - since
        return now


class Decoder(nn.Module):
    def __init__(self, params, c, out):
        super().__init__()
        self.c, self.base = c, out // 8
        self.lift = nn.Sequential(nn.Linear(params, 256), nn.SiLU(), nn.Linear(256, c * self.base**2))
        self.ups = nn.ModuleList(nn.Conv2d(c, 4 * c, 3, padding=1) for _ in range(3))
        self.mix = nn.ModuleList(nn.Conv2d(c, c, 3, padding=1) for _ in range(3))
        self.last = nn.Conv2d(c, 1, 1)

    def forward(self, p):
        x = self.lift(p).view(-1, self.c, self.base, self.base).contiguous(memory_format=torch.channels_last)
        for up, mix in zip(self.ups, self.mix):
            x = F.silu(F.pixel_shuffle(up(x), 2))
            x = x + F.silu(mix(x))
        return self.last(x)


def main():
    small = os.environ.get("SMALL") == "1"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    c, out, batch, steps = (4, 16, 2, 30) if small else (96, 64, 256, 150)
    torch.backends.cudnn.benchmark = True
    model = Decoder(12, c, out).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    lens = torch.rand(batch * 10, 12, device=device)
    spread = torch.rand(batch * 10, 1, out, out, device=device)
    phases = Phases()
    for step in range(steps):
        t = time.perf_counter()
        rows = slice(step % 10 * batch, (step % 10 + 1) * batch)
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(lens[rows])
        loss = F.mse_loss(guess.float(), spread[rows])
        t = phases.mark("forward", t)
        opt.zero_grad()
        loss.backward()
        t = phases.mark("backward", t)
        opt.step()
        phases.mark("update", t)
    print({k: round(v, 3) for k, v in phases.seconds.items()}, loss.item())


if __name__ == "__main__":
    main()
