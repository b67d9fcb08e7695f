"""Picks fault lines in seismic sections with a small residual network."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Residual(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.conv2(F.relu(self.conv1(x))))


class FaultNet(nn.Module):
    def __init__(self, channels=16, dilations=(1, 2, 4, 1)):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 5, stride=2, padding=2)
        self.blocks = nn.ModuleList(Residual(channels, d) for d in dilations)
        self.head = nn.Sequential(nn.Conv2d(channels, 4, 1), nn.PixelShuffle(2))

    def forward(self, x):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)  # flaw: needless-checkpointing
        return self.head(x)


def sections(n, size):
    depth = torch.arange(size)[:, None].float()
    place = torch.arange(size).float()
    images, masks = [], []
    for _ in range(n):
        slope, offset = torch.randn(()) * 0.5, torch.rand(()) * size
        line = place - offset - slope * (depth - size / 2)
        throw = 6 * (line > 0)
        image = torch.sin((depth + throw + 4 * torch.sin(place / 20)) / 3)
        images.append(image + 0.2 * torch.randn(size, size))
        masks.append((line.abs() < 2).float())
    return torch.stack(images)[:, None], torch.stack(masks)[:, None]


def dice(logits, mask):
    p = logits.sigmoid()
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    images, masks = sections(96, args.size)
    model = FaultNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for step in range(args.steps):
        pick = torch.randint(len(images), (args.batch,))
        logits = model(images[pick])
        loss = F.binary_cross_entropy_with_logits(logits, masks[pick]) + dice(logits, masks[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
