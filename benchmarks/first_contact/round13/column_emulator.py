#!/usr/bin/env python3
"""Column emulator: next state of every atmospheric column from the current one."""
import os
import torch
import torch.nn as nn

REG = {}


def register(name):
    def keep(cls):
        REG[name] = cls
        return cls
    return keep


class Standardise(nn.Module):
    """Zero mean and unit variance over the features, then an affine map."""

    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.shift = nn.Parameter(torch.zeros(features))
        self.tiny = 1e-5

    def forward(self, x):
        first = x.mean(-1, keepdim=True)  # flaw: hand-written-norm
        second = x.square().mean(-1, keepdim=True)  # flaw: hand-written-norm
        inv = (second - first.square() + self.tiny).rsqrt()  # flaw: hand-written-norm
        return torch.addcmul(self.shift, (x - first) * inv, self.scale)  # flaw: hand-written-norm


class Feed(nn.Sequential):
    def __init__(self, n, hidden):
        super().__init__(nn.Linear(n, hidden), nn.GELU(), nn.Linear(hidden, n))


@register("column")
class Column(nn.Module):
    def __init__(self, fields, dim, depth):
        super().__init__()
        self.lift = nn.Linear(fields, dim)
        self.feature = nn.ModuleList(Feed(dim, 2 * dim) for _ in range(depth))
        self.pre = nn.ModuleList(Standardise(dim) for _ in range(depth))
        self.drop = nn.Linear(dim, fields)

    def forward(self, frame):
        x = self.lift(frame)
        for pre, feature in zip(self.pre, self.feature):
            x = x + feature(pre(x))
        return frame + self.drop(x)


CONFIG = """
model: column
fields: 64
cells: 512
dim: 512
depth: 8
frames: 4096
batch: 256
steps: 360
"""
TINY = {"cells": 16, "dim": 32, "depth": 2, "frames": 64, "batch": 8, "steps": 6}


def load(text):
    pairs = (line.split(": ") for line in text.strip().splitlines())
    conf = {k: int(v) if v.isdigit() else v for k, v in pairs}
    if os.environ.get("TINY") == "1":
        conf.update(TINY)
    return conf


def main():
    c = load(CONFIG)
    gpu = torch.cuda.is_available()
    dev = torch.device("cuda" if gpu else "cpu")
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    half = torch.bfloat16 if gpu else torch.float32
    frames = torch.randn(c["frames"] + 1, c["cells"], c["fields"], device=dev)
    for t in range(1, c["frames"] + 1):
        frames[t].mul_(0.3).add_(frames[t - 1].roll(1, 0), alpha=0.95)
    frames = frames.to(half)
    net = REG[c["model"]](c["fields"], c["dim"], c["depth"]).to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=gpu)
    trail = torch.zeros((), device=dev)
    for step in range(c["steps"]):
        t = torch.randint(c["frames"], (c["batch"],), device=dev)
        with torch.autocast(dev.type, torch.bfloat16, enabled=gpu):
            loss = nn.functional.mse_loss(net(frames[t]), frames[t + 1])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        trail.lerp_(loss.detach(), 0.05 if step else 1.0)
    print(f"trail {trail.item():.4f}")


main()
