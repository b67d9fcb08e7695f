"""Physics-informed network for the lid-driven cavity (stream function and pressure)."""
import os

import torch
from torch import nn


def settings():
    if os.environ.get("SMALL"):
        return dict(width=16, depth=2, interior=64, boundary=16, steps=30)
    return dict(width=512, depth=6, interior=16384, boundary=2048, steps=60)


class Field(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [2] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 2)

    def forward(self, xy):
        h = xy
        for layer in self.hidden:
            h = torch.tanh(layer(h))  # flaw: fp32-matmul
        return self.out(h)  # flaw: fp32-matmul


def d(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def residual(field, xy, nu):
    xy.requires_grad_(True)
    psi, p = field(xy).unbind(-1)
    dpsi = d(psi, xy)
    u, v = dpsi[:, 1], -dpsi[:, 0]
    du, dv, dp = d(u, xy), d(v, xy), d(p, xy)
    mx = u * du[:, 0] + v * du[:, 1] + dp[:, 0]
    my = u * dv[:, 0] + v * dv[:, 1] + dp[:, 1]
    lap = d(du[:, 0], xy)[:, 0] + d(du[:, 1], xy)[:, 1]
    return (mx - nu * lap).square().mean() + my.square().mean()


def wall(field, n, device):
    t = torch.rand(n, 1, device=device)
    lid = torch.cat([t, torch.ones_like(t)], 1)
    floor = torch.cat([t, torch.zeros_like(t)], 1)
    return field(lid)[:, 0].square().mean() + field(floor)[:, 0].square().mean()


def main():
    cfg = settings()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(3)
    field = Field(cfg["width"], cfg["depth"]).to(device)
    opt = torch.optim.Adam(field.parameters(), lr=1e-3, fused=True)
    for step in range(cfg["steps"]):
        xy = torch.rand(cfg["interior"], 2, device=device)
        loss = residual(field, xy, 0.01) + 10 * wall(field, cfg["boundary"], device)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            print(step + 1, f"{loss.item():.3e}")


if __name__ == "__main__":
    main()
