"""Simulates an ensemble of conductance-based axons with heterogeneous channels; reports firing rates."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Membrane:
    v: Tensor
    m: Tensor
    h: Tensor
    n: Tensor


@dataclass(frozen=True)
class Channels:
    sodium: Tensor
    potassium: Tensor
    leak: Tensor
    drive: Tensor


def heterogeneous(cells: int, gen: torch.Generator) -> Channels:
    def around(mean: float, spread: float) -> Tensor:
        return mean * (1 + spread * torch.randn(cells, generator=gen).clamp(-2, 2))

    return Channels(around(120.0, 0.05), around(36.0, 0.05), around(0.3, 0.05), around(9.0, 0.25))


def at_rest(cells: int) -> Membrane:
    return Membrane(
        torch.full((cells,), -65.0),
        torch.full((cells,), 0.0529),
        torch.full((cells,), 0.5961),
        torch.full((cells,), 0.3177),
    )


def advance(v: Tensor, m: Tensor, h: Tensor, n: Tensor, c: Channels, dt: float):  # flaw: unfused-elementwise
    """One exponential-Euler step of the gates and one Euler step of the voltage."""
    am = 0.1 * (v + 40.0) / (1.0 - torch.exp(-(v + 40.0) / 10.0))
    bm = 4.0 * torch.exp(-(v + 65.0) / 18.0)
    ah = 0.07 * torch.exp(-(v + 65.0) / 20.0)
    bh = 1.0 / (1.0 + torch.exp(-(v + 35.0) / 10.0))
    an = 0.01 * (v + 55.0) / (1.0 - torch.exp(-(v + 55.0) / 10.0))
    bn = 0.125 * torch.exp(-(v + 65.0) / 80.0)
    m = am / (am + bm) + (m - am / (am + bm)) * torch.exp(-dt * (am + bm))
    h = ah / (ah + bh) + (h - ah / (ah + bh)) * torch.exp(-dt * (ah + bh))
    n = an / (an + bn) + (n - an / (an + bn)) * torch.exp(-dt * (an + bn))
    sodium = c.sodium * m * m * m * h * (v - 50.0)
    potassium = c.potassium * n * n * n * n * (v + 77.0)
    leak = c.leak * (v + 54.4)
    return v + dt * (c.drive - sodium - potassium - leak), m, h, n


class SpikeCounter:
    def __init__(self, cells: int, threshold: float = 0.0):
        self.spikes = torch.zeros(cells)
        self.above = torch.zeros(cells, dtype=torch.bool)
        self.threshold = threshold

    def look(self, v: Tensor) -> None:
        now = v > self.threshold
        self.spikes += now & ~self.above
        self.above = now


def simulate(cells: int, milliseconds: float, dt: float) -> Tensor:
    gen = torch.Generator().manual_seed(52)
    channels = heterogeneous(cells, gen)
    state = at_rest(cells)
    counter = SpikeCounter(cells)
    steps = int(milliseconds / dt)
    for step in range(1, steps + 1):
        state = Membrane(*advance(state.v, state.m, state.h, state.n, channels, dt))
        counter.look(state.v)
        if step % (steps // 4) == 0:
            print(f"{step * dt:6.1f} ms: {counter.spikes.mean().item():.4f} spikes a cell")
    return counter.spikes / milliseconds * 1000.0


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    rates = simulate(cells=250_000, milliseconds=40.0, dt=0.025)
    print(f"mean rate {rates.mean().item():.2f} Hz, spread {rates.std().item():.2f} Hz")


if __name__ == "__main__":
    main()
