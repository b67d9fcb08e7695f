"""Calibrates a predator-prey model with a neural correction term to noisy pelt counts.

The trajectory is integrated with a fixed-step scheme and differentiated through.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

torch.set_num_threads(1)
torch.autograd.set_detect_anomaly(True)  # flaw: anomaly-detection-on


@dataclass
class Plan:
    series: int = 512
    points: int = 16
    dt: float = 0.1
    hidden: int = 64
    rounds: int = 260
    lr: float = 3e-3


class Correction(nn.Module):
    """What the textbook equations leave out, as a small network of both populations."""

    def __init__(self, hidden: int):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, state: Tensor) -> Tensor:
        return self.net(state)


class Ecology(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.log_rates = nn.Parameter(torch.log(torch.tensor([0.8, 0.5, 0.5, 0.8])))
        self.correction = Correction(hidden)

    def derivative(self, state: Tensor) -> Tensor:
        birth, caught, eaten, death = self.log_rates.exp()
        hare, lynx = state.unbind(-1)
        met = hare * lynx
        flow = torch.stack([birth * hare - caught * met, eaten * met - death * lynx], dim=-1)
        return flow + self.correction(state)

    def forward(self, start: Tensor, points: int, dt: float) -> Tensor:
        path, state = [], start
        for _ in range(points):
            middle = state + 0.5 * dt * self.derivative(state)
            state = state + dt * self.derivative(middle)
            path.append(state)
        return torch.stack(path, dim=1)


def field_counts(plan: Plan, gen: torch.Generator) -> tuple[Tensor, Tensor]:
    truth = torch.tensor([1.1, 0.6, 0.4, 0.9])
    start = 0.5 + 1.5 * torch.rand(plan.series, 2, generator=gen)
    state, path = start, []
    for _ in range(plan.points):
        for _ in range(10):
            hare, lynx = state.unbind(-1)
            met = hare * lynx * (1 - 0.05 * hare)
            flow = torch.stack([truth[0] * hare - truth[1] * met, truth[2] * met - truth[3] * lynx], dim=-1)
            state = state + 0.1 * plan.dt * flow
        path.append(state)
    clean = torch.stack(path, dim=1)
    return start, clean * (1 + 0.01 * torch.randn(clean.shape, generator=gen))


def calibrate(plan: Plan) -> Ecology:
    torch.manual_seed(61)
    start, counts = field_counts(plan, torch.Generator().manual_seed(62))
    ecology = Ecology(plan.hidden)
    optimizer = torch.optim.Adam(ecology.parameters(), lr=plan.lr, fused=True)
    for i in range(1, plan.rounds + 1):
        loss = nn.functional.mse_loss(ecology(start, plan.points, plan.dt), counts)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(ecology.parameters(), 1.0)
        optimizer.step()
        if i % 52 == 0:
            print(f"round {i:4d}: root error {math.sqrt(loss.item()):.5f}")
    return ecology


if __name__ == "__main__":
    fitted = calibrate(Plan())
    print("rates", [round(r, 3) for r in fitted.log_rates.exp().tolist()])
