"""Fit a signed distance function to a scanned object: a compiled multilayer perceptron, bf16."""
import math
import types

import torch
import torch.nn.functional as F
from torch import nn

CFG = types.SimpleNamespace(points=262144, width=512, layers=5, octaves=8, steps=250, clamp=0.1)
if not torch.cuda.is_available():
    CFG = types.SimpleNamespace(points=256, width=32, layers=2, octaves=4, steps=5, clamp=0.1)


class Field(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.register_buffer("octaves", math.pi * 2.0 ** torch.arange(cfg.octaves))
        n_in = 8 * cfg.octaves
        sizes = [n_in] + [cfg.width] * cfg.layers
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(cfg.width, 8)

    def forward(self, points):
        """points: n x 4 (position and radius); returns the distance of eight parts, the first is used."""
        phase = (points.unsqueeze(2) * self.octaves).flatten(1)
        h = torch.cat([phase.sin(), phase.cos()], 1)
        for layer in self.layers:
            h = F.silu(layer(h))
        return self.out(h)


def objective(field, points, distance, clamp):
    predicted = field(points).float().clamp(-clamp, clamp)
    return F.l1_loss(predicted, distance.clamp(-clamp, clamp).expand_as(predicted))


class Scan:
    """Point samples around a torus with exact distances, prepared on the device."""

    def __init__(self, points, device, pool=4, seed=160):
        gen = torch.Generator(device).manual_seed(seed)
        xyz = torch.rand(pool, points, 3, generator=gen, device=device) * 2 - 1
        ring = torch.linalg.vector_norm(xyz[..., :2], dim=-1) - 0.6
        self.distance = (torch.hypot(ring, xyz[..., 2]) - 0.25).unsqueeze(-1)
        self.points = torch.cat([xyz, torch.linalg.vector_norm(xyz, dim=-1, keepdim=True)], -1)

    def batch(self, step):
        i = step % len(self.points)
        return self.points[i], self.distance[i]


def fit(cfg, device):
    torch.manual_seed(161)
    field = Field(cfg).to(device)
    loss_of = torch.compile(objective) if device.type == "cuda" else objective
    optimizer = torch.optim.AdamW(field.parameters(), lr=1e-3, fused=True)
    scan = Scan(cfg.points, device)
    curve = torch.zeros(cfg.steps, device=device)
    for step in range(cfg.steps):
        points, distance = scan.batch(step)
        with torch.autocast(device.type, torch.bfloat16):
            loss = loss_of(field, points, distance, cfg.clamp)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        curve[step] = loss.detach()
    return curve.tolist()


if __name__ == "__main__":
    curve = fit(CFG, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    print(f"mean error {curve[0]:.5f} -> {curve[-1]:.5f}")
