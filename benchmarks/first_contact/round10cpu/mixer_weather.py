"""MLP-mixer that predicts the next weather map from the last ones."""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn


def gelu(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))  # flaw: hand-written-activation
    return 0.5 * x * (1 + torch.tanh(inner))  # flaw: hand-written-activation


class Mlp(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.fc1 = nn.Linear(size, hidden)
        self.fc2 = nn.Linear(hidden, size)

    def forward(self, x):
        return self.fc2(gelu(self.fc1(x)))


class MixerBlock(nn.Module):
    def __init__(self, tokens, channels):
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.tokens = Mlp(tokens, 2 * tokens)
        self.norm2 = nn.LayerNorm(channels)
        self.channels = Mlp(channels, 4 * channels)

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class WeatherMixer(nn.Module):
    def __init__(self, maps, size=32, patch=4, channels=64, depth=3):
        super().__init__()
        self.patch = patch
        tokens = (size // patch) ** 2
        self.embed = nn.Linear(maps * patch * patch, channels)
        self.blocks = nn.Sequential(*(MixerBlock(tokens, channels) for _ in range(depth)))
        self.head = nn.Linear(channels, patch * patch)

    def forward(self, maps):
        size = maps.shape[-1]
        x = F.unfold(maps, self.patch, stride=self.patch).transpose(1, 2)
        x = self.head(self.blocks(self.embed(x))).transpose(1, 2)
        return F.fold(x, size, self.patch, stride=self.patch)


def weather(count, size, generator):
    """Waves that travel over a torus: maps of shape (count, size, size)."""
    t = torch.arange(count)[:, None, None] / 10
    grid = 2 * torch.pi * torch.arange(size) / size
    kx, ky, speed, phase = torch.rand(4, 6, generator=generator)
    field = torch.zeros(count, size, size)
    for a, b, s, p in zip((kx * 4).round(), (ky * 4).round(), speed, phase):
        field += torch.sin(a * grid[None, None, :] + b * grid[None, :, None] + s * t + 6 * p)
    return field


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--maps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(0)
    series = weather(1200, 32, torch.Generator().manual_seed(2))
    windows = series.unfold(0, args.maps + 1, 1).permute(0, 3, 1, 2)
    model = WeatherMixer(args.maps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(1, args.steps + 1):
        batch = windows[torch.randint(len(windows), (args.batch,))]
        loss = F.mse_loss(model(batch[:, :-1]), batch[:, -1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} mse {loss.item():.4f}")


if __name__ == "__main__":
    main()
