"""Acoustic forward modelling: a Ricker source per shot, receivers along the surface."""
import math
import os
import time
from collections import Counter
from contextlib import contextmanager

import torch

TINY = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NZ, NX, NT, SHOTS = (48, 64, 12, 3) if TINY else (3072, 8192, 60, 640)
DX, DT, PEAK = 5.0, 5e-4, 25.0
SPENT = Counter()


@contextmanager
def section(label):
    """Adds the wall time of a block to SPENT."""
    begin = time.perf_counter()
    yield
    if device.type == "cuda":
        torch.cuda.current_stream().synchronize()  # flaw: synchronize-in-step
    SPENT[label] += time.perf_counter() - begin


def ricker(n):
    t = torch.arange(n, dtype=torch.float32) * DT - 1.2 / PEAK
    a = (math.pi * PEAK * t) ** 2
    return (1 - 2 * a) * torch.exp(-a)


def leapfrog(now, before, courant, damp):
    """One fourth-order step in space, second order in time; `before` receives the new field."""
    lap = (-5.0 * now
           + (4.0 / 3.0) * (now.roll(1, 0) + now.roll(-1, 0) + now.roll(1, 1) + now.roll(-1, 1))
           - (1.0 / 12.0) * (now.roll(2, 0) + now.roll(-2, 0) + now.roll(2, 1) + now.roll(-2, 1)))
    return damp * (2.0 * now - damp * before + courant * lap)


def earth():
    depth = torch.linspace(0, 1, NZ, device=device)[:, None]
    speed = (1500 + 2500 * depth + 120 * torch.sin(40 * depth)).expand(NZ, NX)
    edge = torch.ones(NZ, NX, device=device)
    width = min(NZ, NX) // 16
    ramp = torch.exp(-(0.015 * torch.arange(width, 0, -1, device=device)) ** 2)
    edge[-width:] *= ramp.flip(0)[:, None]
    edge[:, :width] *= ramp
    edge[:, -width:] *= ramp.flip(0)
    return ((speed * DT / DX) ** 2).contiguous(), edge


step_fn = leapfrog if TINY else torch.compile(leapfrog, fullgraph=True)


def shoot(column, wavelet, courant, damp, gather):
    now = torch.zeros(NZ, NX, device=device)
    before = torch.zeros_like(now)
    for it in range(NT):
        with section("propagate"):
            now, before = step_fn(now, before, courant, damp), now
            now[4, column].add_(wavelet[it])
            gather[it] = now[8]


@torch.no_grad()
def survey():
    wavelet = ricker(NT).to(device)
    courant, damp = earth()
    gather = torch.zeros(NT, NX, device=device)
    stacked = torch.zeros_like(gather)
    shot = 0
    while shot < SHOTS:
        shoot((shot * 37) % NX, wavelet, courant, damp, gather)
        stacked += gather
        shot += 1
    return stacked


if __name__ == "__main__":
    section_energy = survey().square().mean().item()
    print(f"energy {section_energy:.6e}")
    print({k: round(v, 1) for k, v in SPENT.items()} if not TINY else "")
