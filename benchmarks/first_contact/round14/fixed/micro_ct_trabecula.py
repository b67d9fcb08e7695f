"""Segment trabecular bone in micro-CT cubes with a residual net of 3-D convolutions of several reaches."""
import os
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EDGE, CUBES, CHANNELS, BLOCKS, STEPS = (12, 1, 8, 1, 3) if TINY else (64, 4, 64, 4, 150)


def prepare(seed, *, tune=True):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = tune
    torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("high")


def conv(inside, outside, reach, gap=1):
    return nn.Conv3d(inside, outside, reach, padding=gap * (reach // 2), dilation=gap, bias=False)


class Reach(nn.Module):
    """Three views of the neighbourhood: close, wide and spread."""

    def __init__(self, c):
        super().__init__()
        self.close, self.wide, self.spread = conv(c, c // 2, 3), conv(c, c // 4, 5), conv(c, c // 4, 3, gap=3)
        self.norm = nn.BatchNorm3d(c)
        self.join = conv(c, c, 1)

    def forward(self, x):
        seen = torch.cat([self.close(x), self.wide(x), self.spread(x)], 1)
        return x + self.join(F.silu(self.norm(seen)))


class Trabecula(nn.Sequential):
    def __init__(self):
        super().__init__(conv(1, CHANNELS, 3), *[Reach(CHANNELS) for _ in range(BLOCKS)], nn.Conv3d(CHANNELS, 2, 1))


def specimens(count):
    g = torch.Generator(device=DEVICE).manual_seed(6)
    rough = torch.randn(count, 1, EDGE // 4, EDGE // 4, EDGE // 4, generator=g, device=DEVICE)
    bone = F.interpolate(rough, size=(EDGE,) * 3, mode="trilinear")
    scan = bone + 0.7 * torch.randn(bone.shape, generator=g, device=DEVICE)
    return scan, (bone[:, 0] > 0.2).long()


def main():
    prepare(41)
    scans, truth = specimens(4 * CUBES)
    net = Trabecula().to(DEVICE, memory_format=torch.channels_last_3d)
    scans = scans.to(memory_format=torch.channels_last_3d)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    record = []
    for step in range(STEPS):
        at = step % 4 * CUBES
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(scans[at:at + CUBES]), truth[at:at + CUBES])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        record.append(loss.detach())
    print("cross entropy", *(f"{v:.3f}" for v in torch.stack(record)[:: max(1, STEPS // 5)].tolist()))


if __name__ == "__main__":
    main()
