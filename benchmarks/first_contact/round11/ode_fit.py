"""Fit a small neural ODE to trajectories of a damped pendulum with a fixed-step Runge-Kutta solver."""
import math
import time

import torch
from torch import nn

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")

settings = {
    "hidden": 64,
    "trajectories": 256 if CUDA else 8,
    "intervals": 30 if CUDA else 4,
    "t_end": 3.0,
    "steps": 150 if CUDA else 3,
    "lr": 3e-3,
}


class Derivative(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, y):
        return self.net(y)


class RungeKutta(nn.Module):
    """Integrates dy/dt = f(y) and returns the states at all interval ends: (intervals, batch, 2)."""

    def __init__(self, derivative, t_end, intervals):
        super().__init__()
        self.f = derivative
        self.h = t_end / intervals
        self.intervals = intervals

    def forward(self, y):
        h, states = self.h, []
        for _ in range(self.intervals):
            k1 = self.f(y)
            k2 = self.f(y + 0.5 * h * k1)
            k3 = self.f(y + 0.5 * h * k2)
            k4 = self.f(y + h * k3)
            y = y + (h / 6) * (k1 + 2 * k2 + 2 * k3 + k4)
            states.append(y)
        return torch.stack(states)


def pendulum(y):
    angle, speed = y.unbind(-1)
    return torch.stack([speed, -0.15 * speed - torch.sin(angle)], dim=-1)


@torch.no_grad()
def reference(y0, t_end, intervals, refine=8):
    """True trajectories, with a finer step."""
    h, y, out = t_end / intervals / refine, y0, []
    for i in range(intervals * refine):
        k1 = pendulum(y)
        k2 = pendulum(y + 0.5 * h * k1)
        k3 = pendulum(y + 0.5 * h * k2)
        k4 = pendulum(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if (i + 1) % refine == 0:
            out.append(y)
    return torch.stack(out)


def make_problem():
    gen = torch.Generator().manual_seed(0)
    angle = (torch.rand(settings["trajectories"], 1, generator=gen) * 2 - 1) * math.pi * 0.9
    speed = torch.randn(settings["trajectories"], 1, generator=gen)
    y0 = torch.cat([angle, speed], dim=1).to(device)
    return y0, reference(y0, settings["t_end"], settings["intervals"])


def make_solver(y0):
    torch.manual_seed(0)
    derivative = Derivative(settings["hidden"])
    return RungeKutta(derivative, settings["t_end"], settings["intervals"]).to(device)  # flaw: launch-bound


def fit():
    y0, target = make_problem()
    solver = make_solver(y0)
    optimizer = torch.optim.Adam(solver.parameters(), lr=settings["lr"], fused=True)
    curve = torch.zeros(settings["steps"], device=device)
    for step in range(settings["steps"]):
        predicted = solver(y0)  # flaw: launch-bound
        loss = (predicted - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve[step] = loss.detach()
    return curve


def main():
    torch.set_float32_matmul_precision("high")
    began = time.perf_counter()
    curve = fit().tolist()
    print(f"mean squared error {curve[0]:.4f} -> {curve[-1]:.4f}")
    print(f"{len(curve)} steps in {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
