"""Screens scans of daguerreotypes for tarnish: tone mapping per band, then a shallow convolution."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
PLATES, SIDE, SCANS = (2, 32, 4) if TINY else (20, 256, 120)
BANDS = 6


class Toner(nn.Module):
    """Maps every spectral band to its own tone; the settings belong to the last axis."""

    def __init__(self):
        super().__init__()
        self.register_buffer("dark", torch.linspace(0.02, 0.08, BANDS))
        self.register_buffer("gain", torch.linspace(1.4, 0.9, BANDS))

    def forward(self, scans):
        bands = scans.permute(0, 2, 3, 1).contiguous()  # flaw: layout-churn
        bands = torch.addcmul(-self.dark * self.gain, bands, self.gain).clamp_(0, 1)
        return bands.permute(0, 3, 1, 2).contiguous()  # flaw: layout-churn


class Screen(nn.Module):
    def __init__(self):
        super().__init__()
        self.tone = Toner()
        self.spots = nn.Conv2d(BANDS, 4, 5, stride=4)

    def forward(self, scans):
        return self.spots(self.tone(scans)).relu_().mean((2, 3)).amax(1)


@torch.inference_mode()
def main():
    torch.manual_seed(17)
    screen = Screen().eval()
    drawer = torch.rand(3, PLATES, BANDS, SIDE, SIDE)
    worst = torch.zeros(PLATES)
    for number in range(SCANS):
        worst = torch.maximum(worst, screen(drawer[number % 3]))
    print("tarnish", " ".join(f"{value:.4f}" for value in worst.tolist()))


main()
