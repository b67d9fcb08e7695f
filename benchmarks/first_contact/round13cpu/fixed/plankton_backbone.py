"""Embeds plankton crops in bulk with a depthwise-separable backbone (batch inference, registry of blocks)."""
from functools import partial

import torch
from torch import nn

BLOCKS = {}


def register(name):
    def add(cls):
        BLOCKS[name] = cls
        return cls
    return add


@register("stem")
class Stem(nn.Sequential):
    def __init__(self, cin, cout, stride=2):
        super().__init__(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU6(inplace=True))


@register("separable")
class Separable(nn.Module):
    def __init__(self, cin, cout, stride=1, grow=4):
        super().__init__()
        mid = cin * grow
        conv = partial(nn.Conv2d, bias=False)
        self.same = stride == 1 and cin == cout
        self.path = nn.Sequential(
            conv(cin, mid, 1), nn.BatchNorm2d(mid), nn.ReLU6(inplace=True),
            conv(mid, mid, 3, stride, 1, groups=mid), nn.BatchNorm2d(mid), nn.ReLU6(inplace=True),
            conv(mid, cout, 1), nn.BatchNorm2d(cout),
        )

    def forward(self, x):
        y = self.path(x)
        return y.add_(x) if self.same else y


PLAN = [("stem", 3, 16, 2), ("separable", 16, 24, 2), ("separable", 24, 24, 1),
        ("separable", 24, 40, 2), ("separable", 40, 40, 1), ("separable", 40, 64, 2)]


class Backbone(nn.Module):
    def __init__(self, plan=PLAN):
        super().__init__()
        self.blocks = nn.Sequential(*(BLOCKS[kind](i, o, s) for kind, i, o, s in plan))
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def forward(self, x):
        return nn.functional.normalize(self.pool(self.blocks(x)))


def crops(batches, size, side, seed):
    gen = torch.Generator().manual_seed(seed)
    raw = torch.randint(0, 256, (size, side, side, 3), generator=gen, dtype=torch.uint8)
    for i in range(batches):
        yield raw.roll(i, 1)


def embed_all(batches=340, size=16, side=128):
    torch.manual_seed(4)
    model = Backbone().eval().to(memory_format=torch.channels_last)
    centre = torch.zeros(64)
    with torch.inference_mode():
        for batch in crops(batches, size, side, 4):
            x = batch.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.channels_last)
            centre += model(x.div_(127.5).sub_(1.0)).mean(0)
    return centre / batches


if __name__ == "__main__":
    print("centre norm", round(float(embed_all().norm()), 4))
