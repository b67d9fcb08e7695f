"""Sea-ice drift between two radar images: a small encoder-decoder predicts the displacement of each cell."""
import functools
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

STEPS = int(os.environ.get("STEPS", 300))
SIDE = int(os.environ.get("SIDE", 48))
BATCH = int(os.environ.get("BATCH", 6))


def frugal(stage):
    """Wraps a stage so that it keeps only what it was given."""
    return functools.partial(checkpoint, stage, use_reentrant=False)


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(4, outputs), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(4, outputs), nn.ReLU(inplace=True),
    )


class DriftNet(nn.Module):
    def __init__(self, base=16):
        super().__init__()
        self.down1 = double(2, base)
        self.down2 = double(base, 2 * base)
        self.middle = double(2 * base, 4 * base)
        self.up2 = double(6 * base, 2 * base)
        self.up1 = double(3 * base, base)
        self.drift = nn.Conv2d(base, 2, 1)

    def forward(self, pair):
        one = frugal(self.down1)(pair)  # flaw: needless-checkpointing
        two = frugal(self.down2)(F.max_pool2d(one, 2))  # flaw: needless-checkpointing
        low = frugal(self.middle)(F.max_pool2d(two, 2))  # flaw: needless-checkpointing
        low = F.interpolate(low, scale_factor=2, mode="nearest")
        two = frugal(self.up2)(torch.cat([low, two], 1))  # flaw: needless-checkpointing
        two = F.interpolate(two, scale_factor=2, mode="nearest")
        return self.drift(frugal(self.up1)(torch.cat([two, one], 1)))  # flaw: needless-checkpointing


def base_grid(side):
    line = torch.linspace(-1, 1, side)
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([x, y], dim=-1)


def scenes(grid, gen):
    """Speckled floes and the same floes after a smooth drift."""
    side = len(grid)
    while True:
        floes = F.interpolate(torch.randn(BATCH, 1, side // 4, side // 4, generator=gen), size=side, mode="bicubic")
        drift = F.interpolate(torch.randn(BATCH, 2, 3, 3, generator=gen), size=side, mode="bilinear") * 0.06
        moved = F.grid_sample(floes, grid + drift.permute(0, 2, 3, 1), padding_mode="reflection", align_corners=True)
        pair = torch.cat([floes, moved], dim=1)
        yield pair + 0.1 * torch.randn(pair.shape, generator=gen), drift


def objective(found, drift):
    fit = F.l1_loss(found, drift)
    bend = (found[..., 1:] - found[..., :-1]).abs().mean() + (found[..., 1:, :] - found[..., :-1, :]).abs().mean()
    return fit + 0.05 * bend


torch.manual_seed(70)
net = DriftNet()
solver = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)
source = scenes(base_grid(SIDE), torch.Generator().manual_seed(70))
for step, (pair, drift) in zip(range(1, STEPS + 1), source):
    loss = objective(net(pair), drift)
    solver.zero_grad()
    loss.backward()
    solver.step()
    if step % 50 == 0:
        print(f"step {step:4d}  objective {loss.item():.5f}", flush=True)
