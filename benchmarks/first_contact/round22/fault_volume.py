"""Segment faults in seismic volumes with an anisotropic, dilated 3-D network.

Input: eight attribute cubes of a survey (amplitude, coherence, dips, ...). Output: the likelihood of eight
classes of discontinuity for every voxel. The survey is made up: layers, cut and shifted along planes.
"""
import json
import os
import random
from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = json.loads(
    """{
    "full": {"cubes": 96, "depth": 48, "side": 96, "base": 32, "batch": 4, "steps": 2000, "report": 50},
    "tiny": {"cubes": 8, "depth": 8, "side": 8, "base": 32, "batch": 2, "steps": 30, "report": 10},
    "seed": 271, "lr": 0.001, "weight_decay": 0.0001
}"""
)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LAYOUT = torch.channels_last_3d


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.benchmark = False  # flaw: untuned-convolution


def same(kernel, dilation):
    return tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation))


class Conv(nn.Module):
    def __init__(self, i, o, kernel=(3, 3, 3), dilation=(1, 1, 1), stride=1):
        super().__init__()
        self.conv = nn.Conv3d(i, o, kernel, stride, same(kernel, dilation), dilation, bias=False)
        self.norm = nn.BatchNorm3d(o)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)), inplace=True)


flat = partial(Conv, kernel=(1, 5, 5))
tall = partial(Conv, kernel=(5, 3, 3))


class Pyramid(nn.Module):
    """Dilated branches side by side."""

    def __init__(self, width, rates=(1, 2, 4, 6)):
        super().__init__()
        self.branches = nn.ModuleList(Conv(width, width // 2, dilation=(1, r, r)) for r in rates)
        self.merge = Conv(width // 2 * len(rates), width, kernel=(1, 1, 1))

    def forward(self, x):
        return self.merge(torch.cat([branch(x) for branch in self.branches], 1))


class FaultNet(nn.Module):
    def __init__(self, attributes, classes, base):
        super().__init__()
        self.stem = nn.Sequential(flat(attributes, base), tall(base, base))
        self.down1 = nn.Sequential(Conv(base, 2 * base, stride=2), tall(2 * base, 2 * base))
        self.down2 = nn.Sequential(Conv(2 * base, 4 * base, stride=2), Pyramid(4 * base))
        self.up1 = nn.ConvTranspose3d(4 * base, 2 * base, 2, 2)
        self.fuse1 = flat(4 * base, 2 * base)
        self.up2 = nn.ConvTranspose3d(2 * base, base, 2, 2)
        self.fuse2 = nn.Sequential(tall(2 * base, base), Conv(base, base, dilation=(1, 2, 2)))
        self.head = nn.Conv3d(base, classes, 1)

    def forward(self, x):
        fine = self.stem(x)
        middle = self.down1(fine)
        coarse = self.down2(middle)
        middle = self.fuse1(torch.cat((self.up1(coarse), middle), 1))
        return self.head(self.fuse2(torch.cat((self.up2(middle), fine), 1)))


def survey(cubes, depth, side, seed):
    g = torch.Generator(DEVICE).manual_seed(seed)
    z = torch.arange(depth, device=DEVICE).view(1, 1, depth, 1, 1)
    x = torch.arange(side, device=DEVICE).view(1, 1, 1, 1, side)
    y = torch.arange(side, device=DEVICE).view(1, 1, 1, side, 1)
    place = torch.rand(cubes, 8, 1, 1, 1, device=DEVICE, generator=g) * side
    slope = torch.randn(cubes, 8, 1, 1, 1, device=DEVICE, generator=g)
    gap = x + slope * 0.3 * y - place
    faults = (gap.abs() < 1.5).expand(-1, -1, depth, -1, -1)
    layers = torch.sin(z * 0.7 + (gap > 0).float() * 2)
    noise = torch.randn(layers.shape, device=DEVICE, generator=g)
    volume = (layers + 0.3 * noise).bfloat16()
    return volume.contiguous(memory_format=LAYOUT), faults.to(torch.uint8).contiguous(memory_format=LAYOUT)


def main():
    size = CONFIG["tiny" if os.environ.get("TINY") == "1" else "full"]
    seed_everything(CONFIG["seed"])
    volumes, faults = survey(size["cubes"], size["depth"], size["side"], CONFIG["seed"])
    net = FaultNet(8, 8, size["base"]).to(DEVICE, memory_format=LAYOUT)
    optimizer = torch.optim.AdamW(net.parameters(), lr=CONFIG["lr"], weight_decay=CONFIG["weight_decay"], fused=True)
    generator = torch.Generator(DEVICE).manual_seed(CONFIG["seed"])
    total = torch.zeros((), device=DEVICE)
    for step in range(1, size["steps"] + 1):
        chosen = torch.randint(size["cubes"], (size["batch"],), device=DEVICE, generator=generator)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            scores = net(volumes[chosen])
        loss = F.binary_cross_entropy_with_logits(scores.float(), faults[chosen].float())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % size["report"] == 0:
            print(f"step {step}: cross entropy {total.item() / size['report']:.4f}", flush=True)
            total.zero_()


if __name__ == "__main__":
    main()
