"""Model-predictive control: cross-entropy planning through a learned dynamics network."""
import os
import time
from typing import Protocol

import torch
from torch import Tensor, nn

tiny = os.environ.get("TINY") == "1"
OBS, ACT = 32, 8
CANDIDATES = 32 if tiny else 1024
ELITES = 8 if tiny else 64
HORIZON = 6 if tiny else 48
REFINEMENTS = 2 if tiny else 3
WIDTH = 32 if tiny else 256
CONTROL_STEPS = 60 if tiny else 1300
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Controller(Protocol):
    def __call__(self, obs: Tensor, noise: Tensor) -> Tensor: ...


class Dynamics(nn.Module):
    """Residual next-state prediction."""

    def __init__(self):
        super().__init__()
        self.state_in = nn.Linear(OBS, WIDTH)
        self.action_in = nn.Linear(ACT, WIDTH, bias=False)
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, OBS)

    def forward(self, s, a):
        h = torch.tanh(self.state_in(s) + self.action_in(a))
        return torch.add(s, torch.tanh(self.out(torch.tanh(self.hidden(h)))), alpha=0.2)


class CrossEntropyPlanner:
    def __init__(self, model: nn.Module, goal: Tensor):
        self.model, self.goal = model, goal

    def imagine(self, obs: Tensor, plans: Tensor) -> Tensor:
        s = obs.expand(CANDIDATES, -1)
        cost = torch.zeros(CANDIDATES, device=obs.device)
        for a in plans.unbind(0):
            s = self.model(s, a)
            cost = cost + torch.linalg.vector_norm(s - self.goal, dim=1)
        return cost

    def __call__(self, obs: Tensor, noise: Tensor) -> Tensor:
        mean = torch.zeros(HORIZON, 1, ACT, device=obs.device)
        std = torch.ones_like(mean)
        for eps in noise.unbind(0):
            plans = torch.addcmul(mean, std, eps).clamp_(-2, 2)
            best = self.imagine(obs, plans).topk(ELITES, largest=False, sorted=False).indices
            std, mean = torch.std_mean(plans[:, best], dim=1, keepdim=True)
        return mean[0, 0]


def controller(model: nn.Module, goal: Tensor) -> Controller:
    return CrossEntropyPlanner(model, goal)  # flaw: launch-bound


def plant(obs: Tensor, action: Tensor, drift: Tensor) -> Tensor:
    return torch.addmv(obs, drift, action)


@torch.inference_mode()
def main():
    torch.manual_seed(8)
    torch.set_float32_matmul_precision("high")
    model = Dynamics().to(device)
    goal = torch.randn(OBS, device=device) * 0.1
    drift = torch.randn(OBS, ACT, device=device) * 0.03
    plan = controller(model, goal)
    obs = torch.randn(OBS, device=device)
    noise = torch.empty(REFINEMENTS, HORIZON, CANDIDATES, ACT, device=device)
    gen = torch.Generator(device=device).manual_seed(12)
    travelled = torch.zeros((), device=device)
    started = time.perf_counter()
    for _ in range(CONTROL_STEPS):
        noise.normal_(generator=gen)
        action = plan(obs, noise)  # flaw: launch-bound
        obs = plant(obs, action, drift)
        travelled += torch.linalg.vector_norm(obs - goal)
    print(f"mean distance {travelled.item() / CONTROL_STEPS:.4f}")
    print(f"{time.perf_counter() - started:.2f} s for {CONTROL_STEPS} control steps")


main()
