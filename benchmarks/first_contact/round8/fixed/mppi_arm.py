"""Model predictive path integral control of a simulated arm with learned dynamics."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

CUDA = torch.cuda.is_available()


@dataclass(frozen=True)
class MPPI:
    samples: int = 8192 if CUDA else 64
    horizon: int = 24 if CUDA else 4
    hidden: int = 2048 if CUDA else 32
    ticks: int = 200 if CUDA else 15
    joints: int = 14
    sigma: float = 0.35
    temperature: float = 0.6


class Dynamics(nn.Module):
    """Predicts the change of joint angles and velocities."""

    def __init__(self, joints: int, hidden: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3 * joints, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, 2 * joints),
        )

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        return torch.add(state, self.net(torch.cat((state, action), dim=-1)), alpha=0.05)


def stage_cost(state: Tensor, goal: Tensor) -> Tensor:
    return torch.linalg.vector_norm(state - goal, dim=-1)


def plan(model: Dynamics, state: Tensor, goal: Tensor, nominal: Tensor, cfg: MPPI) -> Tensor:
    shape = (cfg.horizon, cfg.samples, cfg.joints)
    noise = torch.randn(shape, device=nominal.device, dtype=nominal.dtype)
    actions = torch.add(nominal[:, None], noise, alpha=cfg.sigma).clamp_(-1, 1)
    rollout = state.expand(cfg.samples, -1)
    cost = torch.zeros(cfg.samples, device=state.device, dtype=state.dtype)
    for action in actions:
        rollout = model(rollout, action)
        cost += stage_cost(rollout, goal)
    weights = torch.softmax(-(cost - cost.min()).float() / cfg.temperature, dim=0).to(actions.dtype)
    return torch.einsum("s,hsj->hj", weights, actions)


@torch.inference_mode()
def main() -> None:
    cfg = MPPI()
    torch.manual_seed(0)
    device = torch.device("cuda" if CUDA else "cpu")
    dtype = torch.bfloat16 if CUDA else torch.float32
    model = Dynamics(cfg.joints, cfg.hidden).to(device, dtype).eval()
    plant = Dynamics(cfg.joints, cfg.hidden).to(device, dtype).eval()

    state = torch.zeros(2 * cfg.joints, device=device, dtype=dtype)
    goal = torch.linspace(-1, 1, 2 * cfg.joints, device=device, dtype=dtype)
    nominal = torch.zeros(cfg.horizon, cfg.joints, device=device, dtype=dtype)
    distance = torch.zeros(cfg.ticks, device=device)

    for tick in range(cfg.ticks):
        nominal = plan(model, state, goal, nominal, cfg)
        state = plant(state, nominal[0])
        distance[tick] = stage_cost(state, goal)
        nominal = nominal.roll(-1, dims=0)
        nominal[-1] = 0

    first, last = distance[0].item(), distance[-1].item()
    print(f"distance to goal: {first:.2f} -> {last:.2f}")


if __name__ == "__main__":
    main()
