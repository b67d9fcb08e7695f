"""Pressure on turbofan blades from point clouds: a transformer operator, set up by one dictionary."""

import contextlib
import functools
import time

import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "seed": 6,
    "device": "cuda" if torch.cuda.is_available() else "cpu",
    "data": {"blades": 96, "points": 2048},
    "model": {"width": 512, "heads": 8, "depth": 4, "bands": 16},
    "train": {"steps": 400, "batch": 4, "lr": 1e-4, "clip": 1.0},
    "arithmetic": "single",  # flaw: fp32-matmul
}

ARITHMETIC = {
    "single": contextlib.nullcontext,
    "mixed": functools.partial(torch.autocast, CONFIG["device"], dtype=torch.bfloat16),
}


def make_blades(blades, points, device, seed):
    rng = torch.Generator(device=device).manual_seed(seed)
    span = torch.rand(blades, points, 1, generator=rng, device=device)
    chord = torch.rand(blades, points, 1, generator=rng, device=device)
    twist = torch.rand(blades, 1, 1, generator=rng, device=device) + 0.5
    cloud = torch.cat([span, chord * (span * twist).cos(), chord * (span * twist).sin(), twist.expand_as(span)], -1)
    pressure = torch.sin(6 * span) * (1 - chord) + twist * torch.exp(-8 * (chord - 0.3 * span) ** 2)
    return cloud, pressure


class Waves(nn.Module):
    """Coordinates as sines and cosines of rising frequency."""

    def __init__(self, bands):
        super().__init__()
        self.register_buffer("rates", 2.0 ** torch.linspace(0, 4, bands))

    def forward(self, cloud):
        angles = (cloud[..., None] * self.rates).flatten(-2)
        return torch.cat([angles.sin(), angles.cos()], -1)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


class BladeOperator(nn.Module):
    def __init__(self, width, heads, depth, bands):
        super().__init__()
        self.waves = Waves(bands)
        self.embed = nn.Linear(8 * bands, width)
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
        self.read = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, cloud):
        return self.read(self.layers(self.embed(self.waves(cloud))))


def relative(made, wanted):
    return ((made.float() - wanted).norm(dim=(1, 2)) / wanted.norm(dim=(1, 2))).mean()


def run(config):
    device, plan = config["device"], config["train"]
    torch.manual_seed(config["seed"])
    clouds, pressures = make_blades(**config["data"], device=device, seed=1)
    model = BladeOperator(**config["model"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan["lr"], fused=True)
    arithmetic = ARITHMETIC[config["arithmetic"]]
    began = time.perf_counter()
    for step in range(plan["steps"]):
        at = step * plan["batch"] % len(clouds)
        cloud, pressure = clouds[at : at + plan["batch"]], pressures[at : at + plan["batch"]]
        with arithmetic():
            made = model(cloud)
        loss = relative(made, pressure)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), plan["clip"])
        optimizer.step()
        if (step + 1) % 80 == 0:
            print(f"{step + 1:4d} {loss.item():.4f} {(time.perf_counter() - began) / (step + 1) * 1e3:.1f} ms")


run(CONFIG)
