"""Downscaling: readings of weather stations are spread over a grid and refined by a small CNN."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
SIDE, STATIONS, BATCH, CHANNELS, WIDTH, STEPS = (16, 32, 2, 8, 16, 6) if TINY else (256, 2048, 8, 32, 64, 2000)
device = "cuda" if torch.cuda.is_available() else "cpu"


def kriging_weights(cells, sites, reach):
    gap = torch.cdist(cells, sites)
    near = torch.exp(-(gap / reach) ** 2)
    return near / near.sum(1, keepdim=True).clamp_min(1e-6)


class Spread(nn.Module):
    """Station values -> map, by distance."""

    def __init__(self, sites, reach):
        super().__init__()
        line = torch.linspace(0, 1, SIDE)
        cells = torch.cartesian_prod(line, line)
        self.register_buffer("weights", kriging_weights(cells, sites, reach).to(torch.bfloat16))

    def forward(self, values):
        b, c, s = values.shape
        maps = self.weights @ values.reshape(b * c, s).t()
        return maps.view(SIDE, SIDE, b, c).permute(2, 3, 0, 1).contiguous(memory_format=torch.channels_last)


class Downscaler(nn.Module):
    def __init__(self, sites):
        super().__init__()
        self.lift = nn.Linear(4, CHANNELS)
        self.spread = Spread(sites, 0.05)
        self.refine = nn.Sequential(
            nn.Conv2d(CHANNELS, WIDTH, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(WIDTH, 8, 1))

    def forward(self, readings):
        return self.refine(self.spread(self.lift(readings).transpose(1, 2)))


torch.manual_seed(8)
torch.backends.cudnn.benchmark = True
model = Downscaler(torch.rand(STATIONS, 2)).to(device, memory_format=torch.channels_last)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
readings = torch.randn(16, BATCH, STATIONS, 4, device=device)
truth = torch.randn(16, BATCH, 8, SIDE, SIDE, device=device, dtype=torch.bfloat16)
truth = [t.contiguous(memory_format=torch.channels_last) for t in truth]

for step in range(STEPS):
    with torch.autocast(device, dtype=torch.bfloat16):
        field = model(readings[step % 16])
    loss = F.mse_loss(field, truth[step % 16])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 250 == 0:
        print(step, f"{loss.item():.3f}")
print(f"end {loss.item():.3f}")
