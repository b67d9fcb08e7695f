"""Learn the torque policy of a planar arm by differentiating through a short rollout."""
import os
import sys
import time
from dataclasses import dataclass

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


@dataclass(frozen=True)
class RunConfig:
    arms: int = 32 if TINY else 512
    horizon: int = 6 if TINY else 24
    dt: float = 0.04
    hidden: int = 64
    updates: int = 8 if TINY else 100
    lr: float = 1e-3
    strict_autograd: bool = True  # flaw: anomaly-detection-on


class Policy(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, q, w, goal):
        return self.net(torch.cat([q.sin(), q.cos(), w, goal], dim=1))


class ArmTask:
    def __init__(self, cfg):
        self.cfg = cfg

    def tip(self, q):
        total = q.cumsum(1)
        return torch.stack([total.cos().sum(1), total.sin().sum(1)], dim=1)

    def rollout(self, policy, q, w, goal):
        cost = 0.0
        for _ in range(self.cfg.horizon):
            torque = policy(q, w, goal)
            w = w + self.cfg.dt * (torque - 0.1 * w)
            q = q + self.cfg.dt * w
            cost = cost + (self.tip(q) - goal).square().sum(1).mean() + 1e-3 * torque.square().mean()
        return cost / self.cfg.horizon


class Session:
    def __init__(self, cfg):
        torch.manual_seed(7)
        self.cfg = cfg
        self.task = ArmTask(cfg)
        self.policy = Policy(cfg.hidden)
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=cfg.lr, fused=True)
        self.starts = torch.randn(4, cfg.arms, 2)
        self.goals = torch.randn(4, cfg.arms, 2)

    def update(self, n):
        q, goal = self.starts[n % 4], self.goals[n % 4]
        cost = self.task.rollout(self.policy, q, torch.zeros_like(q), goal)
        self.optimizer.zero_grad(set_to_none=True)
        cost.backward()
        self.optimizer.step()
        return cost

    def run(self):
        with torch.autograd.set_detect_anomaly(self.cfg.strict_autograd):  # flaw: anomaly-detection-on
            for n in range(self.cfg.updates):
                cost = self.update(n)
        return cost.item()


if __name__ == "__main__":
    session = Session(RunConfig())
    began = time.perf_counter()
    final = session.run()
    print(f"{(time.perf_counter() - began) / session.cfg.updates * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"tracking cost {final:.3f}")
