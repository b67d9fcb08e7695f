"""Counts diatom genera: a residual network on microscope crops."""
import os
from dataclasses import dataclass, replace

import torch
from torch import nn


@dataclass(frozen=True)
class Census:
    crop: int = 224
    batch: int = 128
    genera: int = 64
    stages: tuple = (64, 128, 256, 512)
    deep: int = 2
    rounds: int = 220
    layout: torch.memory_format = torch.contiguous_format  # flaw: channels-first-conv


SMALL = dict(crop=32, batch=4, genera=5, stages=(8, 16), deep=1, rounds=3)


def cbr(cin, cout, k, stride=1, act=True):
    layers = [nn.Conv2d(cin, cout, k, stride, k // 2, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if act else []))


class Residue(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.long = nn.Sequential(cbr(cin, cout, 3, stride), cbr(cout, cout, 3, act=False))
        self.short = nn.Identity() if cin == cout and stride == 1 else cbr(cin, cout, 1, stride, act=False)

    def forward(self, x):
        return torch.relu_(self.long(x) + self.short(x))


def network(c: Census):
    parts = [cbr(3, c.stages[0], 7, 2), nn.MaxPool2d(3, 2, 1)]
    cin = c.stages[0]
    for i, size in enumerate(c.stages):
        for j in range(c.deep):
            parts.append(Residue(cin, size, 2 if i and not j else 1))
            cin = size
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, c.genera))


class Slides:
    """Microscope crops that live on the device as bytes."""

    def __init__(self, c, device):
        g = torch.Generator(device).manual_seed(5)
        self.c, self.g, self.device = c, g, device
        self.pixels = torch.randint(0, 256, (c.batch * 8, 3, c.crop, c.crop), dtype=torch.uint8, device=device, generator=g)
        self.kind = torch.randint(0, c.genera, (c.batch * 8,), device=device, generator=g)

    def __iter__(self):
        for _ in range(self.c.rounds):
            at = torch.randint(0, len(self.kind), (self.c.batch,), device=self.device, generator=self.g)
            crops = self.pixels[at].to(torch.bfloat16).contiguous(memory_format=self.c.layout)
            yield crops.sub_(127.5).div_(64), self.kind[at]


def run(c):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    net = network(c).to(device, memory_format=c.layout)
    sgd = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, fused=True)
    judge = nn.CrossEntropyLoss(label_smoothing=0.1)
    tally = torch.zeros((), device=device)
    for crops, kind in Slides(c, device):
        with torch.autocast(device, torch.bfloat16):
            loss = judge(net(crops), kind)
        loss.backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)
        tally += loss.detach()
    print(f"census loss {tally.item() / c.rounds:.3f}")


if __name__ == "__main__":
    census = Census()
    run(replace(census, **SMALL) if os.environ.get("TINY") == "1" else census)
