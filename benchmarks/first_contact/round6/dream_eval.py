"""Open-loop evaluation of a recurrent dynamics model: how far do imagined trajectories drift?"""
import argparse
import os

import torch
from torch import nn


class Dynamics(nn.Module):
    def __init__(self, obs, act, hidden):
        super().__init__()
        self.inp = nn.Linear(obs + act, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, obs))

    def forward(self, obs, act, h):
        h = self.cell(nn.functional.silu(self.inp(torch.cat([obs, act], -1))), h)
        return obs + self.out(self.norm(h)), h


class Drift:
    def __init__(self, horizon, device):
        self.sum = torch.zeros(horizon, device=device)
        self.batches = 0

    def add(self, imagined, real):
        self.sum += (imagined - real).square().mean((0, 2)).detach()
        self.batches += 1

    def at(self, *where):
        mean = (self.sum / self.batches).tolist()
        return {w: round(mean[w], 4) for w in where}


class Evaluator:
    def __init__(self, model, hidden):
        self.model, self.hidden = model.eval(), hidden

    def imagine(self, first, actions):  # flaw: grad-in-eval
        h = first.new_zeros(len(first), self.hidden)
        obs, path = first, []
        for a in actions.unbind(1):
            obs, h = self.model(obs, a, h)
            path.append(obs)
        return torch.stack(path, 1)

    def run(self, episodes, drift):
        for obs, actions in episodes:
            drift.add(self.imagine(obs[:, 0], actions), obs[:, 1:])
        return drift


def episodes(n, batch, horizon, obs, act, device):
    g = torch.Generator(device).manual_seed(0)
    for _ in range(n):
        walk = torch.randn(batch, horizon + 1, obs, device=device, generator=g).cumsum(1) * 0.1
        yield walk, torch.randn(batch, horizon, act, device=device, generator=g)


def main():
    small = bool(os.environ.get("SMALL"))
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=8 if small else 512)
    p.add_argument("--horizon", type=int, default=5 if small else 120)
    p.add_argument("--hidden", type=int, default=16 if small else 512)
    p.add_argument("--episodes", type=int, default=30 if small else 100)
    a = p.parse_args()
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Dynamics(24, 6, a.hidden).to(device)
    source = episodes(a.episodes, a.batch, a.horizon, 24, 6, device)
    drift = Evaluator(model, a.hidden).run(source, Drift(a.horizon, device))
    print(drift.at(0, a.horizon // 2, a.horizon - 1))


if __name__ == "__main__":
    main()
