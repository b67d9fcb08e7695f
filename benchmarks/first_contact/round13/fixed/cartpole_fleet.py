"""Evaluate a population of policies on a fleet of cart-poles that live on the device."""
import os

import torch
import torch.nn as nn

TINY = os.environ.get("TINY") == "1"
FLEET = 128 if TINY else 196608
TICKS = 8 if TINY else 100
EPISODES = 2 if TINY else 450
HIDDEN = 16 if TINY else 256
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
half = torch.bfloat16 if dev.type == "cuda" else torch.float32
torch.set_float32_matmul_precision("high")


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU())
        self.push = nn.Parameter(torch.randn(HIDDEN) / HIDDEN ** 0.5)

    def forward(self, s):
        wide = torch.cat((s, s.square()), 1).to(half)
        return (self.net(wide) * self.push).sum(1, dtype=torch.float32).mul(4).tanh()


def dynamics(s, force, dt=0.02):
    x, vx, a, va = s.unbind(1)
    sin, cos = a.sin(), a.cos()
    tmp = (10.0 * force + 0.05 * va.square() * sin) / 1.1
    acc = (9.8 * sin - cos * tmp) / (0.5 * (4.0 / 3.0 - 0.1 * cos.square() / 1.1))
    ax = tmp - 0.05 * acc * cos / 1.1
    nxt = torch.stack((x + dt * vx, vx + dt * ax, a + dt * va, va + dt * acc), 1)
    fallen = (nxt[:, 0].abs() > 2.4) | (nxt[:, 2].abs() > 0.21)
    return nxt, fallen


class Fleet:
    def __init__(self, n, policy):
        g = torch.Generator(dev).manual_seed(30)
        self.home = torch.empty(n, 4, device=dev).uniform_(-0.05, 0.05, generator=g)
        self.state = self.home.clone()
        self.policy = policy
        self.falls = torch.zeros((), device=dev)
        self.tick = self._tick if TINY else torch.compile(self._tick)
        self.put_back = self._put_back if TINY else torch.compile(self._put_back)

    def _tick(self, state):
        return dynamics(state, self.policy(state))

    def _put_back(self, state, fallen, falls):
        return torch.where(fallen.unsqueeze(1), self.home, state), falls + fallen.sum()

    def play(self, ticks):
        for _ in range(ticks):
            self.state, fallen = self.tick(self.state)
            self.state, self.falls = self.put_back(self.state, fallen, self.falls)
        return self.falls


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    fleet = Fleet(FLEET, Policy().to(dev, half))
    for _ in range(EPISODES):
        fleet.play(TICKS)
    print(f"falls per cart {fleet.falls.item() / FLEET:.4f}, energy {fleet.state.square().mean().item():.4f}")


main()
