"""Sampling-based model predictive control of a pendulum chain with a learned dynamics ensemble."""
import os
from typing import Protocol

import torch
from torch import Tensor, nn

TINY = os.environ.get("TINY") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STATE, ACTION = 24, 8


class Planner(Protocol):
    def __call__(self, state: Tensor, mean: Tensor, noise: Tensor) -> Tensor: ...


class Dynamics(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.a = nn.Linear(STATE + ACTION, hidden)
        self.b = nn.Linear(hidden, hidden)
        self.c = nn.Linear(hidden, STATE)

    def forward(self, s: Tensor, u: Tensor) -> Tensor:
        h = torch.relu(self.a(torch.cat((s, u), -1)))
        h = torch.relu(self.b(h))
        return torch.add(s, self.c(h), alpha=0.05)


class PathIntegral:
    def __init__(self, model: Dynamics, horizon: int, temperature: float = 0.5):
        self.model, self.horizon, self.temperature = model, horizon, temperature

    def __call__(self, state: Tensor, mean: Tensor, noise: Tensor) -> Tensor:
        controls = (mean[:, None] + noise).clamp_(-1, 1)
        s = state.expand(noise.shape[1], STATE)
        visited = []
        for t in range(self.horizon):
            s = self.model(s, controls[t])
            visited.append(s)
        cost = torch.linalg.vector_norm(torch.stack(visited), dim=-1).sum(0)
        weight = torch.softmax(-cost / self.temperature, 0)
        return torch.einsum("tka,k->ta", controls, weight)


def captured(planner: Planner, horizon: int, samples: int) -> Planner:
    if DEVICE.type != "cuda":
        return planner
    state = torch.zeros(STATE, device=DEVICE)
    mean = torch.zeros(horizon, ACTION, device=DEVICE)
    noise = torch.zeros(horizon, samples, ACTION, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            planner(state, mean, noise)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = planner(state, mean, noise)

    def replay(s: Tensor, m: Tensor, n: Tensor) -> Tensor:
        state.copy_(s)
        mean.copy_(m)
        noise.copy_(n)
        graph.replay()
        return result.clone()

    return replay


class Plant:
    """The true system: slightly different dynamics, always on the device."""

    def __init__(self, model: Dynamics):
        self.model = model
        self.state = torch.linspace(-1, 1, STATE, device=DEVICE)

    def apply(self, u: Tensor) -> Tensor:
        self.state = self.model(self.state[None], u[None])[0].mul_(0.999)
        return self.state


class Controller:
    def __init__(self, planner: Planner, horizon: int, samples: int, rounds: int):
        self.planner: Planner = planner
        self.rounds = rounds
        self.gen = torch.Generator(DEVICE).manual_seed(17)
        self.mean = torch.zeros(horizon, ACTION, device=DEVICE)
        self.shape = (horizon, samples, ACTION)

    def act(self, state: Tensor) -> Tensor:
        noise = 0.3 * torch.randn(self.shape, generator=self.gen, device=DEVICE)
        for _ in range(self.rounds):
            self.mean = self.planner(state, self.mean, noise)
        action = self.mean[0].clone()
        self.mean = self.mean.roll(-1, 0)
        return action


@torch.inference_mode()
def main():
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    horizon, samples, rounds, ticks = (6, 32, 2, 8) if TINY else (64, 2048, 6, 600)
    hidden = 32 if TINY else 128
    learned, real = Dynamics(hidden).to(DEVICE), Dynamics(hidden).to(DEVICE)
    planner = captured(PathIntegral(learned, horizon), horizon, samples)
    controller = Controller(planner, horizon, samples, rounds)
    plant = Plant(real)
    trace = torch.zeros(ticks, device=DEVICE)
    state = plant.state
    for k in range(ticks):
        state = plant.apply(controller.act(state))
        trace[k] = state.norm()
    print(f"mean distance {trace.mean().item():.5f}")
    print(f"final distance {trace[-1].item():.5f}")


if __name__ == "__main__":
    main()
