"""Larval drift in a tidal estuary: an ensemble of tracers moved by a learned current.

For each spawning night an ensemble is released and followed for two days.  The network of the current
is fixed (random weights here, a regional model's emulator in practice).
"""
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Plan:
    larvae: int = 6000
    nights: int = 170
    hours: float = 48.0
    dt: float = 0.25
    spread: float = 0.03
    seed: int = 80

    @property
    def moves(self) -> int:
        return round(self.hours / self.dt)


class Current(nn.Module):
    """Two velocities from place and tide; the tide enters as phase."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))
        self.push = nn.Linear(2, 2, bias=False)

    def forward(self, place: Tensor, phase: Tensor) -> Tensor:
        return 0.2 * torch.addmm(self.push(phase), self.net[0:2](place), self.net[2].weight.T)


class Estuary:
    def __init__(self, plan: Plan, device: torch.device):
        torch.manual_seed(plan.seed)
        self.plan, self.device = plan, device
        self.current = Current().to(device).requires_grad_(False)
        self.noise = torch.Generator(device).manual_seed(plan.seed + 1)
        hours = torch.arange(plan.moves, device=device) * plan.dt
        turn = 2 * math.pi * hours / 12.42
        self.phases = torch.stack([turn.sin(), turn.cos()], dim=1).unsqueeze(1)

    def spawn(self) -> Tensor:
        centre = torch.rand(1, 2, device=self.device, generator=self.noise) * 2 - 1
        cloud = torch.randn(self.plan.larvae, 2, device=self.device, generator=self.noise)
        return cloud.mul_(0.1).add_(centre)

    def march(self, place: Tensor) -> Iterator[Tensor]:
        """Euler-Maruyama, one position a quarter of an hour."""
        for phase in self.phases:
            kick = torch.randn(place.shape, device=self.device, generator=self.noise)
            place = torch.add(place, self.current(place, phase), alpha=self.plan.dt).add_(kick, alpha=self.plan.spread)
            yield place

    def paths(self, place: Tensor) -> Tensor:
        """(moves + 1, larvae, 2)"""
        trail = place[None]  # flaw: cat-in-loop
        for place in self.march(place):
            trail = torch.vstack((trail, place[None]))  # flaw: cat-in-loop
        return trail


def connectivity(trail: Tensor) -> tuple[Tensor, Tensor]:
    """How far the larvae get, and the share that settles near the bank in the last twelve hours."""
    reach = (trail[-1] - trail[0]).norm(dim=1).mean()
    late = trail[-48:]
    settled = (late[..., 1].abs() < 0.4).float().mean()
    return reach, settled


@torch.inference_mode()
def survey(plan: Plan, report: int = 34) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    estuary = Estuary(plan, device)
    table = torch.empty(plan.nights, 2, device=device)
    begin = time.perf_counter()
    for night in range(plan.nights):
        trail = estuary.paths(estuary.spawn())
        table[night, 0], table[night, 1] = connectivity(trail)
        if (night + 1) % report == 0:
            reach, settled = table[night + 1 - report : night + 1].mean(0).tolist()
            ms = (time.perf_counter() - begin) / report * 1e3
            print(f"night {night + 1:3d}: reach {reach:.5f}, settled {settled:.5f}, {ms:.0f} ms a night", flush=True)
            begin = time.perf_counter()


if __name__ == "__main__":
    survey(Plan())
