"""Removes noise from seismic sections. States are [section, time, offset, channel] throughout."""
import os

import torch
from torch import nn

SMALL = os.environ.get("TINY") == "1"
CHANNELS, DEPTH, BATCH, SIDE, SECTIONS = (16, 2, 1, 16, 3) if SMALL else (128, 12, 16, 128, 1400)
torch.backends.cudnn.benchmark = True


class ConvOverMap(nn.Module):
    """A convolution for states whose channels come last."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        x = x.movedim(-1, 1)
        x = self.conv(x)
        return x.movedim(1, -1)


class DenoiseBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.spread = ConvOverMap(channels)
        self.norm = nn.LayerNorm(channels)
        self.grow = nn.Linear(channels, 2 * channels)
        self.act = nn.GELU()
        self.shrink = nn.Linear(2 * channels, channels)

    def forward(self, x):
        return x + self.shrink(self.act(self.grow(self.norm(self.spread(x)))))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(8, CHANNELS)
        self.blocks = nn.Sequential(*[DenoiseBlock(CHANNELS) for _ in range(DEPTH)])
        self.lower = nn.Linear(CHANNELS, 8)

    def forward(self, sections):
        return sections - self.lower(self.blocks(self.lift(sections)))


def survey(device, dtype):
    lines = torch.randn(8, BATCH, SIDE, SIDE, 8, device=device, dtype=dtype)
    for number in range(SECTIONS):
        yield lines[number % 8]


@torch.inference_mode()
def main():
    torch.manual_seed(10)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Denoiser().to(device, torch.bfloat16).eval()
    energy = torch.zeros((), device=device)
    for sections in survey(device, torch.bfloat16):
        energy += net(sections).float().square().mean()
    print(f"energy {energy.item() / SECTIONS:.4f}")


main()
