"""Agents that align with, avoid and follow their neighbours, all pairs at once."""
import os
from dataclasses import dataclass, field

import numpy as np
import torch


@dataclass
class FlockConfig:
    agents: int = 64 if os.environ.get("SMALL") else 14000
    ticks: int = 30 if os.environ.get("SMALL") else 150
    radius: float = 0.08
    dt: float = 0.02
    weights: dict = field(default_factory=lambda: {"align": 0.6, "cohere": 0.3, "avoid": 0.05})


def scatter_agents(cfg: FlockConfig, device):
    rng = np.random.default_rng(11)
    place = rng.uniform(0, 1, (cfg.agents, 2))
    heading = rng.uniform(0, 2 * np.pi, cfg.agents)
    speed = np.stack([np.cos(heading), np.sin(heading)], 1)
    return torch.as_tensor(place, device=device), torch.as_tensor(speed, device=device)  # flaw: float64-on-device


class Flock:
    def __init__(self, cfg: FlockConfig, device):
        self.cfg = cfg
        self.pos, self.vel = scatter_agents(cfg, device)

    def neighbours(self):
        dist = torch.cdist(self.pos, self.pos)
        return (dist < self.cfg.radius).to(self.pos.dtype), dist

    def forces(self):
        near, dist = self.neighbours()
        count = near.sum(1, keepdim=True)
        mean_vel = near @ self.vel / count
        mean_pos = near @ self.pos / count
        push = near / (dist + 1e-2)
        away = self.pos * push.sum(1, keepdim=True) - push @ self.pos
        w = self.cfg.weights
        return (
            w["align"] * (mean_vel - self.vel)
            + w["cohere"] * (mean_pos - self.pos)
            + w["avoid"] * away / count
        )

    def tick(self):
        self.vel += self.forces() * self.cfg.dt
        self.vel /= self.vel.norm(dim=1, keepdim=True)
        self.pos = (self.pos + self.vel * self.cfg.dt) % 1.0

    def order(self):
        return self.vel.mean(0).norm()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cfg = FlockConfig()
    with torch.inference_mode():
        flock = Flock(cfg, device)
        for t in range(cfg.ticks):
            flock.tick()
            if t % 50 == 0:
                print(f"tick {t} order {flock.order().item():.4f}")


if __name__ == "__main__":
    main()
