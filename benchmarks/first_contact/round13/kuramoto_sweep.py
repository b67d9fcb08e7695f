"""Ensembles of Kuramoto oscillators on a ring lattice; the phase history is analysed at the end of each coupling."""
import os
from typing import NamedTuple

import torch

SMALL = os.getenv("TINY") == "1"


class Sweep(NamedTuple):
    couplings: tuple = (0.4, 1.2) if SMALL else (0.4, 0.8, 1.2)
    ensemble: int = 4 if SMALL else 2048
    sites: int = 64 if SMALL else 4096
    records: int = 6 if SMALL else 320
    blocks: int = 2 if SMALL else 8
    inner: int = 4
    dt: float = 0.02
    seed: int = 3


def slope(theta, natural, coupling):
    left, right = torch.roll(theta, 1, 1), torch.roll(theta, -1, 1)
    return natural + coupling * (torch.sin(left - theta) + torch.sin(right - theta))


def heun_block(theta, natural, coupling, dt, inner: int):
    for _ in range(inner):
        a = slope(theta, natural, coupling)
        b = slope(theta + dt * a, natural, coupling)
        theta = theta + 0.5 * dt * (a + b)
    return theta


class Recorder:
    def __init__(self, first):
        self.frames = first[None]  # flaw: cat-in-loop

    def __call__(self, state):
        self.frames = torch.vstack((self.frames, state[None]))  # flaw: cat-in-loop

    def history(self):
        return self.frames  # flaw: cat-in-loop


def order_parameter(frames):
    return torch.hypot(frames.cos().mean(2), frames.sin().mean(2)).mean()


def main(cfg=Sweep()):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gen = torch.Generator(device).manual_seed(cfg.seed)
    block = heun_block if SMALL else torch.compile(heun_block, fullgraph=True)
    natural = 0.3 * torch.randn(cfg.ensemble, cfg.sites, generator=gen, device=device)
    start = 6.2832 * torch.rand(cfg.ensemble, cfg.sites, generator=gen, device=device)
    dt = torch.tensor(cfg.dt, device=device)
    order = order_parameter if SMALL else torch.compile(order_parameter)
    with torch.inference_mode():
        for strength in cfg.couplings:
            coupling = torch.tensor(strength, device=device)
            theta = start.clone()
            keep = Recorder(theta)
            for _ in range(cfg.records):
                for _ in range(cfg.blocks):
                    theta = block(theta, natural, coupling, dt, cfg.inner)
                keep(theta)
            history = keep.history()
            tail = history[-cfg.records // 8:]
            score = order(tail)
            print(f"K={strength:.1f} r={score.item():.5f} drift={(history[-1] - history[0]).mean().item():.5f}", flush=True)
            del keep, history, tail


if __name__ == "__main__":
    main()
