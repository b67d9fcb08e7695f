"""Capped brood, open brood, honey or empty: classifying photos of cells on a beehive frame."""
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

Norm = partial(nn.BatchNorm2d, momentum=0.05)


def cells(count, gen, side=40):
    kind = torch.randint(4, (count,), generator=gen)
    y, x = torch.meshgrid(torch.linspace(-1, 1, side), torch.linspace(-1, 1, side), indexing="ij")
    radius = (x * x + y * y).sqrt()
    rings = torch.stack([torch.cos(radius * (3 + 2 * k)) for k in range(4)])
    tint = torch.tensor([[0.8, 0.6, 0.3], [0.9, 0.9, 0.8], [0.9, 0.6, 0.1], [0.4, 0.3, 0.2]])
    photos = rings[kind][:, None] * tint[kind][..., None, None]
    photos = photos + 0.6 * torch.randn(count, 3, side, side, generator=gen)
    return photos.contiguous(memory_format=torch.channels_last), kind


class Squeeze(nn.Module):
    """Halves the image and widens it."""

    def __init__(self, inside, outside):
        super().__init__()
        self.down = nn.Conv2d(inside, outside, 3, stride=2, padding=1, bias=False)
        self.norm = Norm(outside)

    def forward(self, x):
        return F.relu(self.norm(self.down(x)), inplace=True)


class Refine(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = Norm(width)

    def forward(self, x):
        return F.relu(x + self.norm(self.conv(x)))


class FrameNet(nn.Sequential):
    def __init__(self, kinds=4, widths=(16, 32, 64)):
        layers, inside = [], 3
        for width in widths:
            layers += [Squeeze(inside, width), Refine(width)]
            inside = width
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, kinds))


def shuffled(photos, kind, size, gen):
    while True:
        for rows in torch.randperm(len(kind), generator=gen).split(size):
            if len(rows) == size:
                yield photos[rows], kind[rows]


@torch.inference_mode()
def share_right(net, photos, kind):
    net.eval()
    right = sum((net(p).argmax(1) == k).sum().item() for p, k in zip(photos.split(100), kind.split(100)))
    net.train()
    return right / len(kind)


def main(steps=420, size=32):
    torch.manual_seed(40)
    gen = torch.Generator().manual_seed(40)
    photos, kind = cells(1200, gen)
    held = cells(200, gen)
    net = FrameNet().to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4, fused=True)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, 0.06, total_steps=steps)
    for step, (seen, wanted) in enumerate(shuffled(photos, kind, size, gen), 1):
        loss = F.cross_entropy(net(seen), wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
        plan.step()
        if step % 140 == 0:
            print(f"step {step}: loss {loss.item():.4f}, held out {share_right(net, *held):.3f}")
        if step == steps:
            return


if __name__ == "__main__":
    main()
