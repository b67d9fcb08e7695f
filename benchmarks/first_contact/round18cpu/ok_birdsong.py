"""Well made: bird calls from spectrogram patches."""
import os
import sys
import time

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


def conv(i, o, stride):
    return [nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]


def main():
    torch.manual_seed(0)
    n, side = (32, 32) if TINY else (768, 96)
    kinds = torch.randint(0, 6, (n,))
    calls = torch.randn(n, 1, side, side) * 0.5
    for k in range(6):
        calls[kinds == k, :, 10 + 3 * k] += 2
    net = nn.Sequential(*conv(1, 16, 2), *conv(16, 32, 2), *conv(32, 64, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 6))
    net = net.to(memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)
    size, steps = (8, 4) if TINY else (32, 96)
    done, began = 0, time.perf_counter()
    while done < steps:
        for pick in torch.randperm(n).split(size):
            x = calls[pick].contiguous(memory_format=torch.channels_last)
            loss = nn.functional.cross_entropy(net(x), kinds[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            done += 1
            if done == steps:
                break
    print(f"{(time.perf_counter() - began) / steps * 1e3:.1f} ms", file=sys.stderr)
    print(f"loss {loss.item():.4f}")


main()
