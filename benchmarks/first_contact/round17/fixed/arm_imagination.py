"""Improve an arm's policy by differentiating imagined rollouts through a trained world model."""
import argparse
import os

import torch
from torch import nn


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class World(nn.Module):
    def __init__(self, state, act, width):
        super().__init__()
        self.body = mlp([state + act, width, width, width, state])

    def forward(self, s, a):
        return s + 0.1 * self.body(torch.cat([s, a], -1))


def load_world(o):
    torch.manual_seed(1)
    world = World(o.state, o.act, o.width)
    world.load_state_dict(pretrained(o))
    return world.to(o.device).eval().requires_grad_(False)


def pretrained(o):
    torch.manual_seed(2)
    return World(o.state, o.act, o.width).state_dict()


def imagine(policy, world, s, goal, horizon):
    cost = s.new_zeros(())
    for _ in range(horizon):
        a = torch.tanh(policy(torch.cat([s, goal], -1)))
        s = world(s, a)
        cost = cost + (s - goal).square().mean() + 1e-3 * a.square().mean()
    return cost / horizon


def options():
    p = argparse.ArgumentParser()
    tiny = bool(os.environ.get("TINY"))
    p.add_argument("--state", type=int, default=16 if tiny else 64)
    p.add_argument("--act", type=int, default=4 if tiny else 16)
    p.add_argument("--width", type=int, default=32 if tiny else 2048)
    p.add_argument("--horizon", type=int, default=3 if tiny else 8)
    p.add_argument("--robots", type=int, default=8 if tiny else 12288)
    p.add_argument("--rounds", type=int, default=4 if tiny else 450)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return p.parse_args()


def main():
    o = options()
    world = load_world(o)
    torch.manual_seed(4)
    policy = mlp([2 * o.state, 256, 256, o.act]).to(o.device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4, fused=True)
    costs = torch.zeros(o.rounds, device=o.device)
    for r in range(o.rounds):
        s = torch.randn(o.robots, o.state, device=o.device)
        goal = torch.randn(o.robots, o.state, device=o.device)
        with torch.autocast(o.device, dtype=torch.bfloat16):
            cost = imagine(policy, world, s, goal, o.horizon)
        optimizer.zero_grad(set_to_none=True)
        cost.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        costs[r] = cost.detach()
    print(f"first {costs[0].item():.3f} last {costs[-1].item():.3f}")


main()
