"""Fits a coordinate network to one density volume, all voxels of a slab per step."""
import os
import torch
from torch import nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


def coordinates(side, slab):
    axis = torch.linspace(-1, 1, side, device=device)
    z = axis[:slab]
    grid = torch.stack(torch.meshgrid(z, axis, axis, indexing="ij"), -1)
    return grid.reshape(-1, 3)


class Implicit(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.register_buffer("directions", torch.randn(3, features) * 6)
        self.net = nn.Sequential(nn.Linear(2 * features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def embed(self, xyz):
        phase = (xyz[:, :, None] * self.directions).sum(1)
        return torch.cat([phase.sin(), phase.cos()], 1)

    def forward(self, embedded, shift):
        return self.net(embedded + shift)


def main():
    side, slab, features, width, steps = (8, 2, 8, 16, 30) if small else (128, 32, 64, 128, 100)
    model = Implicit(features, width).to(device)
    shift = nn.Parameter(torch.zeros(2 * features, device=device))
    opt = torch.optim.Adam([*model.parameters(), shift], lr=1e-3, fused=True)
    volume = torch.rand(slab * side * side, 1, device=device)
    for step in range(steps):
        embedded = model.embed(coordinates(side, slab))  # flaw: none-yet(constant-rebuilt-each-step)
        with torch.autocast(device, dtype=torch.bfloat16):
            density = model(embedded, shift)
        loss = F.mse_loss(density.float(), volume)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("error", loss.item())


if __name__ == "__main__":
    main()
