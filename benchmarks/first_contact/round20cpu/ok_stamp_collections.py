"""Country of origin of stamps: a small residual CNN, everything in memory, one-cycle schedule.

Usage: python ok_stamp_collections.py [--epochs N] [--width W]
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

COUNTRIES = 10


class ConvBN(nn.Sequential):
    def __init__(self, cin, cout, stride=1):
        super().__init__(
            nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
        )


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(ConvBN(width, width), ConvBN(width, width))

    def forward(self, x):
        return x + self.body(x)


def resnet(width):
    return nn.Sequential(
        ConvBN(3, width, stride=2),
        ConvBN(width, 2 * width, stride=2),
        Residual(2 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, COUNTRIES),
    )


def stamps(n, side, seed):
    """Flags of stripes in random colours, perforated and faded."""
    g = torch.Generator().manual_seed(seed)
    palette = torch.rand(COUNTRIES, 3, 4, 1, generator=g)
    country = torch.randint(COUNTRIES, (n,), generator=g)
    design = F.interpolate(palette[country], size=(side, side), mode="nearest")
    return design + 0.35 * torch.randn(n, 3, side, side, generator=g), country


class Meter:
    def __init__(self):
        self.loss = self.right = self.seen = 0.0

    def add(self, loss, scores, labels):
        self.loss += loss.item() * len(labels)
        self.right += (scores.argmax(1) == labels).sum().item()
        self.seen += len(labels)

    def __str__(self):
        return f"loss {self.loss / self.seen:.4f} acc {self.right / self.seen:.3f}"


def train_epoch(model, images, labels, batch, optimizer, schedule):
    model.train()
    meter = Meter()
    for rows in torch.randperm(len(images)).split(batch):
        scores = model(images[rows])
        loss = F.cross_entropy(scores, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        meter.add(loss, scores, labels[rows])
    return meter


@torch.inference_mode()
def evaluate(model, images, labels, batch=256):
    model.eval()
    meter = Meter()
    for x, y in zip(images.split(batch), labels.split(batch)):
        scores = model(x)
        meter.add(F.cross_entropy(scores, y), scores, y)
    return meter


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=24)
    args = parser.parse_args()

    torch.manual_seed(0)
    images, labels = stamps(3072, 32, seed=6)
    held = slice(2816, None)
    model = resnet(args.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, fused=True)
    steps = args.epochs * (2816 // args.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
    for epoch in range(args.epochs):
        started = time.perf_counter()
        meter = train_epoch(model, images[:2816], labels[:2816], args.batch, optimizer, schedule)
        print(f"epoch {epoch}: {meter} | held out: {evaluate(model, images[held], labels[held])}"
              f" | {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
