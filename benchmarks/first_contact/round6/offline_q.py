"""Offline Q-learning from logged transitions; minibatches are drawn by priority on the host."""
import copy
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

if os.environ.get("SMALL"):
    CFG = dict(log=2000, obs=16, actions=5, width=32, batch=32, steps=30)
else:
    CFG = dict(log=100_000, obs=128, actions=18, width=4096, batch=16384, steps=120)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Log:
    def __init__(self, n, obs, actions, **_):
        self.rng = np.random.default_rng(0)
        g = torch.Generator(device).manual_seed(0)
        self.state = torch.randn(n, obs, device=device, generator=g)
        self.action = torch.randint(actions, (n,), device=device, generator=g)
        self.reward = torch.randn(n, device=device, generator=g)
        age = np.linspace(0.2, 1.0, n)
        self.cumulative = np.cumsum(age)

    def draw(self, batch):
        """Stratified draw, recent transitions more often, then ordered for coalesced reads."""
        total = self.cumulative[-1]
        where = (np.arange(batch) + self.rng.random(batch)) * (total / batch)
        picked = np.searchsorted(self.cumulative, self.rng.permutation(where))
        picked = np.minimum(np.sort(picked), len(self.cumulative) - 2)
        index = torch.from_numpy(picked)
        if device.type == "cuda":
            index = index.pin_memory()
        i = index.to(device, non_blocking=True)
        return self.state[i], self.action[i], self.reward[i], self.state[i + 1]


class Monitor:
    def __init__(self, every=40):
        self.every, self.n, self.sum = every, 0, 0.0

    def __call__(self, td):
        self.n += 1
        self.sum += float(td.abs().mean())  # flaw: sync-in-step
        if self.n % self.every == 0:
            print(f"{self.n:5d} |td| {self.sum / self.n:.4f}")


def q_network(obs, width, actions):
    return nn.Sequential(
        nn.Linear(obs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, actions),
    ).to(device)


class Agent:
    def __init__(self, cfg, watch):
        self.q = q_network(cfg["obs"], cfg["width"], cfg["actions"])
        self.target = copy.deepcopy(self.q).requires_grad_(False)
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-4, fused=True)
        self.sync = list(self.target.parameters()), [p.detach() for p in self.q.parameters()]
        self.watch = watch

    def learn(self, s, a, r, s2):
        with torch.autocast(device.type, torch.bfloat16):
            with torch.no_grad():
                goal = r + 0.99 * self.target(s2).float().amax(1)
            value = self.q(s).float().gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        torch._foreach_lerp_(*self.sync, 0.01)
        self.watch((value - goal).detach())


def main():
    torch.manual_seed(0)
    log = Log(CFG["log"], CFG["obs"], CFG["actions"])
    agent = Agent(CFG, Monitor())
    for _ in range(CFG["steps"]):
        agent.learn(*log.draw(CFG["batch"]))


if __name__ == "__main__":
    main()
