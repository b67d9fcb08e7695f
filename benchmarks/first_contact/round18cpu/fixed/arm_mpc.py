"""Model-predictive control of an arm by the cross-entropy method, over an ensemble of learned dynamics."""
import os
import sys
import time

import torch
from torch import nn

TINY = bool(os.environ.get("TINY"))
STATE, ACT = 8, 3


class Dynamics(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.LayerNorm(STATE + ACT), nn.Linear(STATE + ACT, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, STATE),
        )

    def forward(self, s, a):
        return s + 0.05 * self.net(torch.cat((s, a), -1))


class Planner:
    def __init__(self, models, horizon, candidates, rounds, gen):
        self.models, self.h, self.n, self.rounds, self.gen = models, horizon, candidates, rounds, gen
        self.goal = torch.linspace(-0.5, 0.5, STATE)

    def cost(self, state, plans):
        total = state.new_zeros(self.n)
        for model in self.models:
            s = state.expand(self.n, -1)
            for a in plans.unbind(1):
                s = model(s, a)
                total = total + torch.cdist(s[None], self.goal[None, None]).view(-1)
        return total / len(self.models)

    @torch.inference_mode()
    def plan(self, state):
        mean, spread = torch.zeros(self.h, ACT), torch.ones(self.h, ACT)
        for _ in range(self.rounds):
            plans = torch.normal(0.0, 1.0, (self.n, self.h, ACT), generator=self.gen) * spread + mean
            best = self.cost(state, plans).topk(self.n // 10, largest=False).indices
            elite = plans[best]
            mean, spread = elite.mean(0), elite.std(0) + 0.02
        return mean[0]


def load_models(count):
    torch.manual_seed(12)
    return [Dynamics().eval() for _ in range(count)]


if __name__ == "__main__":
    gen = torch.Generator().manual_seed(4)
    planner = Planner(load_models(4), *((4, 20, 2) if TINY else (20, 96, 3)), gen)
    mass = torch.randn(STATE + ACT, STATE, generator=gen) * 0.02
    state, ticks = torch.zeros(1, STATE), 4 if TINY else 110
    began = time.perf_counter()
    for tick in range(ticks):
        act = planner.plan(state)[None]
        state = state + torch.cat((state, act), 1) @ mass
    print(f"{(time.perf_counter() - began) / ticks * 1e3:.1f} ms", file=sys.stderr)
    print("arm at", [round(v, 3) for v in state[0].tolist()])
