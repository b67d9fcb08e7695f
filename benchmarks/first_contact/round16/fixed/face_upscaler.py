"""Trains a 4x upscaler with a pixel loss and a perceptual loss."""
import os
import torch
from torch import nn
import torch.nn.functional as F

tiny = bool(int(os.environ.get("TINY", "0")))
cuda = torch.cuda.is_available()
dev = "cuda" if cuda else "cpu"
torch.backends.cudnn.benchmark = True
torch.manual_seed(1)


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU(True), nn.Conv2d(c, c, 3, padding=1))

    def forward(self, x):
        return x + self.body(x)


class Upscaler(nn.Module):
    def __init__(self, c, depth):
        super().__init__()
        self.head = nn.Conv2d(3, c, 3, padding=1)
        self.body = nn.Sequential(*[Residual(c) for _ in range(depth)])
        self.tail = nn.Sequential(nn.Conv2d(c, 48, 3, padding=1), nn.PixelShuffle(4))

    def forward(self, x):
        h = self.head(x)
        return self.tail(h + self.body(h))


class Perceptual(nn.Module):
    """Distance between the features of a fixed network (here with fixed random weights)."""

    def __init__(self, widths):
        super().__init__()
        layers, last = [], 3
        for w in widths:
            layers += [nn.Conv2d(last, w, 3, padding=1), nn.ReLU(True), nn.Conv2d(w, w, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2)]
            last = w
        self.net = nn.Sequential(*layers).eval().requires_grad_(False)

    def forward(self, made, true):
        a = self.net(made)
        with torch.no_grad():
            b = self.net(true)
        return F.mse_loss(a, b)


def crops(batch, edge, steps):
    for _ in range(steps):
        sharp = torch.rand(batch, 3, edge, edge, device=dev).contiguous(memory_format=torch.channels_last)
        yield F.avg_pool2d(sharp, 4), sharp


def run(batch, edge, width, depth, widths, steps):
    model = Upscaler(width, depth).to(dev, memory_format=torch.channels_last)
    perceptual = Perceptual(widths).to(dev, memory_format=torch.channels_last)
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    running = torch.zeros(2, device=dev)
    for low, sharp in crops(batch, edge, steps):
        with torch.autocast(dev, dtype=torch.bfloat16):
            made = model(low)
            pixel = F.l1_loss(made, sharp)
            feel = perceptual(made, sharp)
        adam.zero_grad()
        (pixel + 0.1 * feel).backward()
        adam.step()
        running += torch.stack([pixel.detach(), feel.detach()])
    pixel, feel = (running / steps).tolist()
    print(f"pixel {pixel:.4f} perceptual {feel:.5f}")


if tiny:
    run(2, 16, 8, 2, (8, 8), 4)
else:
    run(16, 256, 64, 16, (64, 128, 256), 450)
