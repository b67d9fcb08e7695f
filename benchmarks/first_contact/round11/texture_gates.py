"""Texture recognition with channel-gated residual blocks."""
import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class ChannelGate(nn.Module):
    """Rescales the channels by a function of their mean over the image."""

    def __init__(self, channels, squeeze=4):
        super().__init__()
        self.fc = nn.Sequential(
            nn.Linear(channels, channels // squeeze), nn.ReLU(inplace=True),
            nn.Linear(channels // squeeze, channels), nn.Sigmoid())

    def forward(self, x):
        x = x.contiguous()  # flaw: layout-churn
        gate = self.fc(x.flatten(2).mean(-1))
        return x * gate[:, :, None, None].to(x.dtype)


class GatedBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.gate = ChannelGate(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)), inplace=True)
        h = self.bn2(self.conv2(self.gate(h)))
        return F.relu(h.add_(x), inplace=True)


class TextureNet(nn.Module):
    def __init__(self, channels, depth, classes):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(4, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True))
        self.blocks = nn.Sequential(*[GatedBlock(channels) for _ in range(depth)])
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))


class Callback:
    def on_step(self, step, loss):
        pass

    def on_end(self):
        pass


class LossMeter(Callback):
    def __init__(self, every):
        self.every, self.values = every, []

    def on_step(self, step, loss):
        self.values.append(loss)
        if (step + 1) % self.every == 0:
            print(f"[{step + 1}] {torch.stack(self.values[-self.every:]).mean().item():.4f}")

    def on_end(self):
        print(f"first {self.values[0].item():.4f} last {self.values[-1].item():.4f}")


def gabor_batches(args, device):
    """Oriented stripes plus noise; four input channels (RGB and a height map)."""
    gen = torch.Generator(device).manual_seed(args.seed)
    axis = torch.linspace(-3, 3, args.side, device=device)
    pool = []
    for _ in range(4):
        label = torch.randint(args.classes, (args.batch,), device=device, generator=gen)
        angle = label[:, None, None] * (torch.pi / args.classes)
        stripes = torch.sin(8 * (axis[None, :, None] * angle.cos() + axis[None, None, :] * angle.sin()))
        noise = torch.randn(args.batch, 4, args.side, args.side, device=device, generator=gen)
        image = (stripes[:, None] + noise).to(torch.bfloat16, memory_format=torch.channels_last)
        pool.append((image, label))
    return pool


def run(args, callbacks):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    seed_everything(args.seed)
    torch.backends.cudnn.benchmark = True
    net = TextureNet(args.channels, args.depth, args.classes).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    pool = gabor_batches(args, device)
    for step in range(args.steps):
        image, label = pool[step % len(pool)]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(image), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        for callback in callbacks:
            callback.on_step(step, loss.detach())
    for callback in callbacks:
        callback.on_end()


if __name__ == "__main__":
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64 if gpu else 4)
    parser.add_argument("--side", type=int, default=224 if gpu else 16)
    parser.add_argument("--channels", type=int, default=64 if gpu else 8)
    parser.add_argument("--depth", type=int, default=6 if gpu else 2)
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--steps", type=int, default=130 if gpu else 4)
    parser.add_argument("--seed", type=int, default=0)
    run(parser.parse_args(), [LossMeter(every=50)])
