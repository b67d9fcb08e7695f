"""Picks first arrivals on geophone lines with a dilated residual net."""
import functools
import os
from dataclasses import dataclass, field
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


@dataclass
class Line:
    traces: int = 16
    samples: int = 512
    width: int = 32
    dilations: list = field(default_factory=lambda: [1, 2, 4, 8, 16, 32])
    shots: int = 130
    frugal: bool = False

    @classmethod
    def chosen(cls):
        return cls(traces=2, samples=64, shots=3) if os.environ.get("TINY") else cls()


class Dilated(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.wide = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.calm = nn.GroupNorm(4, width)
        self.narrow = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.narrow(F.gelu(self.calm(self.wide(x))))


class Picker(nn.Module):
    def __init__(self, line):
        super().__init__()
        self.start = nn.Conv1d(1, line.width, 7, padding=3)
        self.body = nn.ModuleList(Dilated(line.width, d) for d in line.dilations)
        self.end = nn.Conv1d(line.width, 1, 1)
        self.passes = [functools.partial(checkpoint, b, use_reentrant=False) if line.frugal else b for b in self.body]

    def forward(self, traces):
        x = self.start(traces)
        for go in self.passes:
            x = go(x)
        return self.end(x).squeeze(1)


def shoot(line):
    arrival = torch.randint(line.samples // 8, line.samples - 8, (line.traces,))
    after = torch.arange(line.samples) >= arrival[:, None]
    return (0.2 * torch.randn(line.traces, line.samples) + after * torch.randn(line.traces, line.samples))[:, None], arrival


def main(line):
    torch.manual_seed(44)
    picker = Picker(line)
    opt = torch.optim.AdamW(picker.parameters(), lr=2e-3, fused=True)
    for shot in range(line.shots):
        traces, arrival = shoot(line)
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(picker(traces), arrival)
        loss.backward()
        opt.step()
        if shot % 20 == 0:
            print(shot, f"{loss.item():.4f}")
    print("picked", f"{loss.item():.4f}")


if __name__ == "__main__":
    main(Line.chosen())
