"""Policy search for a planar quadrotor: rolls a policy out in a batched simulator, then improves it on what it saw."""
import os
import sys
import time

import torch
from torch import nn

TINY = bool(os.environ.get("TINY"))
ROBOTS, HORIZON, ITERATIONS = (16, 10, 4) if TINY else (1024, 120, 70)


class Trace:
    """What the robots saw and did, in the order of time."""

    def __init__(self):
        self.rows = []

    def push(self, *parts):
        self.rows.append(torch.hstack(parts))

    def table(self):
        return torch.vstack(self.rows)


class Quad:
    def __init__(self, n):
        self.mix = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.05, 0.05, 0.05, 0.05], [0.02, -0.02, 0.01, -0.01]]).T
        self.state = torch.randn(n, 6) * 0.1
        drift = torch.eye(6)
        drift[3:, :3] = 0.02 * torch.eye(3)
        self.drift = drift * 0.998

    def step(self, thrust):
        self.state = self.state @ self.drift
        self.state[:, 3:].addmm_(thrust, self.mix, alpha=0.5)
        return self.state


def rollout(policy, sim, noise):
    trace = Trace()
    with torch.no_grad():
        for t in range(HORIZON):
            action = policy(sim.state) + noise[t]
            trace.push(sim.state, action)
            sim.step(action)
    return trace.table()


def improve(policy, table, opt):
    pick = table[torch.randint(len(table), (2048,))]
    state, action = pick.split((6, 4), dim=1)
    gain = torch.softmax(-state.square().sum(1), 0)
    loss = (gain * (policy(state) - action).square().mean(1)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    torch.manual_seed(3)
    policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3, fused=True)
    noise = torch.randn(HORIZON, ROBOTS, 4) * 0.1
    tic = time.perf_counter()
    for it in range(ITERATIONS):
        table = rollout(policy, Quad(ROBOTS), noise)
        last = improve(policy, table, opt)
    print(f"{(time.perf_counter() - tic) / ITERATIONS * 1e3:.1f} ms", file=sys.stderr)
    print(f"loss {last:.5f} rows {len(table)}")


if __name__ == "__main__":
    main()
