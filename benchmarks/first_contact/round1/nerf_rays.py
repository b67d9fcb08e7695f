"""Learns a radiance field from rays of a made-up scene."""
import torch
import torch.nn as nn


def encode(p, bands=10):
    freq = 2.0 ** torch.arange(bands, device=p.device)
    a = (p[..., None] * freq).flatten(-2)
    return torch.cat([p, a.sin(), a.cos()], -1)


class Field(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(63, width), nn.ReLU(), *[m for _ in range(6) for m in (nn.Linear(width, width), nn.ReLU())])
        self.sigma, self.rgb = nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, e):
        h = self.trunk(e)
        return self.sigma(h).relu(), self.rgb(h).sigmoid()


def render(field, origin, direction, depths):
    points = origin[:, None] + direction[:, None] * depths[None, :, None]
    sigma, rgb = field(encode(points))  # flaw: fp32-matmul
    alpha = -torch.expm1(-sigma * (depths[1] - depths[0]))
    free = torch.cumprod(1 - alpha + 1e-6, 1)
    return (alpha * free * rgb).sum(1)


def fit(iterations=300, rays=1024, samples=96):
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    field = Field().to(dev)
    opt = torch.optim.Adam(field.parameters(), lr=5e-4, fused=True)
    depths = torch.linspace(2, 6, samples, device=dev)
    pool = torch.randn(8, rays, 9, device=dev)
    for i in range(iterations):
        origin, direction, colour = pool[i % 8].split(3, dim=1)
        loss = nn.functional.mse_loss(render(field, origin, direction, depths), colour.sigmoid())  # flaw: fp32-matmul
        opt.zero_grad()
        loss.backward()
        opt.step()


fit()
