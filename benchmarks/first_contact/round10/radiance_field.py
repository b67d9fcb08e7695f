"""Fit a neural radiance field to the pixels of one synthetic scene."""
import math
from functools import partial

import torch
from torch import nn

RAYS, SAMPLES, WIDTH, DEPTH, STEPS = (4096, 64, 256, 8, 150) if torch.cuda.is_available() else (32, 8, 16, 3, 2)
NEAR, FAR = 2.0, 6.0


def encode(x, octaves):
    scale = 2.0 ** torch.arange(octaves, device=x.device) * math.pi
    phase = (x[..., None] * scale).flatten(-2)
    return torch.cat([phase.sin(), phase.cos()], -1)


class Field(nn.Module):
    def __init__(self, width, depth, octaves=12):
        super().__init__()
        self.octaves = octaves
        self.inp = nn.Linear(6 * octaves, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.density = nn.Linear(width, 16)
        self.colour = nn.Sequential(nn.Linear(40, width // 2), nn.ReLU(True), nn.Linear(width // 2, 3))

    def forward(self, points, views):
        h = self.inp(encode(points, self.octaves)).relu_()
        for layer in self.hidden:
            h = layer(h).relu_()
        h = self.density(h)
        rgb = self.colour(torch.cat([h, views.to(h.dtype)], -1))
        return h[..., 0], rgb


def composite(sigma, rgb, depths):
    """Volume rendering along each ray."""
    gaps = torch.diff(depths, dim=-1, append=depths[..., -1:] + 1e3)
    alpha = 1 - torch.exp(-nn.functional.softplus(sigma) * gaps)
    clear = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-6], 1), 1)
    return ((alpha * clear)[..., None] * rgb.sigmoid()).sum(1)


def render(field, origins, directions):
    n, device = len(origins), origins.device
    depths = torch.linspace(NEAR, FAR, SAMPLES, device=device).expand(n, -1)
    depths = depths + torch.rand(n, SAMPLES, device=device) * (FAR - NEAR) / SAMPLES
    points = origins[:, None] + depths[..., None] * directions[:, None]
    views = encode(directions, 4)[:, None].expand(-1, SAMPLES, -1)
    sigma, rgb = field(points, views)  # flaw: fp32-matmul
    return composite(sigma, rgb, depths)


def random_rays(n, device):
    origins = torch.nn.functional.normalize(torch.randn(n, 3, device=device), dim=-1) * 4
    target = torch.rand(n, 3, device=device) - 0.5
    directions = torch.nn.functional.normalize(target - origins, dim=-1)
    colours = (target + 0.5).clamp(0, 1)
    return origins, directions, colours


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    field = Field(WIDTH, DEPTH).to(device)
    optimizer = torch.optim.Adam(field.parameters(), lr=5e-4, fused=device.type == "cuda")
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
    bank = random_rays(64 * RAYS, device)
    draw = partial(torch.randint, len(bank[0]), (RAYS,), device=device)
    for step in range(STEPS):
        pick = draw()
        origins, directions, colours = (t[pick] for t in bank)
        loss = nn.functional.mse_loss(render(field, origins, directions), colours)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"{step:5d} psnr {-10 * math.log10(loss.item()):.2f}")


if __name__ == "__main__":
    main()
