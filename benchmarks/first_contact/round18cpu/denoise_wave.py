# Speech denoiser: a residual network on overlapping waveform frames.
import argparse
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
ap = argparse.ArgumentParser()
ap.add_argument("--act", default="mish")
ap.add_argument("--steps", type=int, default=6 if tiny else 100)
ap.add_argument("--batch", type=int, default=2 if tiny else 8)
ap.add_argument("--frames", type=int, default=200 if tiny else 2000)
ap.add_argument("--channels", type=int, default=16 if tiny else 32)
args = ap.parse_args([])

ACTIVATIONS = {}


def register(name):
    def add(fn):
        ACTIVATIONS[name] = fn
        return fn
    return add


@register("relu")
def relu(x):
    return F.relu(x)


@register("mish")
def mish(x):
    return x.mul(torch.log1p(x.exp()).tanh())  # flaw: hand-written-activation


class FrameBlock(nn.Module):
    def __init__(self, width, act):
        super().__init__()
        self.spread = nn.Linear(width, 2 * width)
        self.act = ACTIVATIONS[act]
        self.gather = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.gather(self.act(self.spread(x)))


torch.manual_seed(11)
net = nn.Sequential(
    nn.Linear(64, args.channels), *[FrameBlock(args.channels, args.act) for _ in range(3)], nn.Linear(args.channels, 64)
)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)

t = torch.linspace(0, 1, 32 * args.frames)
pitch = torch.rand(4, args.batch, 1) * 60 + 10
clean = torch.sin(2 * torch.pi * pitch * t)
noisy = clean + 0.3 * torch.randn(clean.shape)
clean, noisy = clean.unfold(-1, 64, 32).contiguous(), noisy.unfold(-1, 64, 32).contiguous()

begin = time.perf_counter()
step = 0
while step < args.steps:
    k = step % 4
    loss = F.l1_loss(net(noisy[k]), clean[k])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    step += 1
print(f"{(time.perf_counter() - begin) / args.steps * 1e3:.1f} ms a step", file=sys.stderr)
print(f"final l1 {loss.item():.3f}")
