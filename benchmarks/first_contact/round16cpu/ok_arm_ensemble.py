"""Behaviour cloning for a robot arm: an ensemble of policies trained side by side with torch.func."""
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

TINY = "TINY" in os.environ
MEMBERS, BATCH, WIDTH, STEPS = (2, 16, 16, 6) if TINY else (8, 512, 288, 150)
SENSORS, JOINTS = 24, 7


def policy():
    return nn.Sequential(nn.Linear(SENSORS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, JOINTS))


def demonstrations(seed=19):
    g = torch.Generator().manual_seed(seed)
    expert = torch.randn(SENSORS, JOINTS, generator=g) * 0.2
    while True:
        seen = torch.randn(MEMBERS, BATCH, SENSORS, generator=g)
        yield seen, torch.tanh(seen @ expert)


def train():
    torch.manual_seed(0)
    members = [policy() for _ in range(MEMBERS)]
    params, _ = stack_module_state(members)
    base = policy().to("meta")
    act = vmap(lambda weights, seen: functional_call(base, weights, (seen,)))
    opt = torch.optim.AdamW(params.values(), lr=2e-3, fused=True)
    demos = demonstrations()
    for step in range(1, STEPS + 1):
        seen, moves = next(demos)
        loss = F.mse_loss(act(params, seen), moves)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % (STEPS // 2) == 0:
            print(f"{step:4d}  {loss.item():.5f}")


if __name__ == "__main__":
    train()
