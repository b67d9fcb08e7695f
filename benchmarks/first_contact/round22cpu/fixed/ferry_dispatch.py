"""Actor-critic dispatch of harbour ferries, with callbacks around every update."""
import random
import time
from collections import deque
from types import SimpleNamespace

import torch
from torch import nn
from torch.distributions import Categorical

PIERS, BOATS, SLOTS = 12, 6, 8


class Crossing:
    """One finished crossing; the log is read by the yearly report."""

    def __init__(self, boat, start, goal, waited):
        self.boat, self.start, self.goal = boat, start, goal
        self.waited = waited
        self.tags = {"late": waited > 20, "long": abs(start - goal) > 6}


class Harbour:
    """Many harbours at once: passengers arrive by a pier-specific rate, a boat empties its pier."""

    def __init__(self, copies, device, seed):
        self.rng = torch.Generator(device).manual_seed(seed)
        self.rate = torch.rand(PIERS, device=device, generator=self.rng) * 0.8
        self.copies, self.device = copies, device
        self.queue = torch.zeros(copies, PIERS, device=device)
        self.where = torch.zeros(copies, BOATS, dtype=torch.long, device=device)

    def view(self):
        spots = nn.functional.one_hot(self.where, PIERS).flatten(1).float()
        return torch.cat([self.queue / 10, spots], dim=1)

    def move(self, goals):
        taken = self.queue.gather(1, goals).clamp(max=12)
        self.queue.scatter_(1, goals, self.queue.gather(1, goals) - taken)
        away = (goals - self.where).abs().sum(1)
        self.where = goals
        arrivals = torch.poisson(self.rate.expand(self.copies, -1), generator=self.rng)
        self.queue = (self.queue + arrivals).clamp(max=40)
        return -(self.queue.sum(1) + 0.3 * away) / 50


class Pilot(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(PIERS + PIERS * BOATS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.goals = nn.Linear(width, BOATS * PIERS)
        self.worth = nn.Linear(width, 1)

    def forward(self, seen):
        h = self.body(seen)
        return self.goals(h).unflatten(1, (BOATS, PIERS)), self.worth(h).squeeze(1)


class Callback:
    def before(self, run): ...

    def after(self, run): ...


class Housekeeping(Callback):
    def after(self, run):
        run.losses.append(run.loss)


class Reporter(Callback):
    def __init__(self, every):
        self.every, self.clock = every, time.perf_counter()

    def after(self, run):
        if run.number % self.every == 0:
            span = (time.perf_counter() - self.clock) / self.every * 1e3
            mean = torch.stack(tuple(run.losses)).mean().item()
            print(f"{run.number:4d} loss {mean:.5f}  log {len(run.log)}  {span:.1f} ms", flush=True)
            self.clock = time.perf_counter()


def play(run, horizon):
    worths, chances, rewards = [], [], []
    entropy = 0.0
    for _ in range(horizon):
        scores, worth = run.pilot(run.harbour.view())
        choice = Categorical(logits=scores, validate_args=False)
        goals = choice.sample()
        chances.append(choice.log_prob(goals).sum(1))
        entropy = entropy + choice.entropy().mean()
        worths.append(worth)
        rewards.append(run.harbour.move(goals))
    return torch.stack(worths), torch.stack(chances), rewards, entropy / horizon


def update(run):
    worths, chances, rewards, entropy = play(run, SLOTS)
    future, returns = worths[-1].detach(), []
    for reward in reversed(rewards):
        future = reward + 0.95 * future
        returns.append(future)
    returns = torch.stack(returns[::-1])
    gain = (returns - worths).detach()
    run.loss = nn.functional.mse_loss(worths, returns) - (gain * chances).mean() - 0.01 * entropy
    run.opt.zero_grad(set_to_none=True)
    run.loss.backward()
    run.opt.step()
    run.loss = run.loss.detach()


def season(seed, crossings):
    dice = random.Random(seed)
    return [
        Crossing(dice.randrange(BOATS), dice.randrange(PIERS), dice.randrange(PIERS), dice.expovariate(0.1))
        for _ in range(crossings)
    ]


def main(updates=240, copies=256):
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pilot = Pilot().to(device)
    run = SimpleNamespace(
        number=0, pilot=pilot, harbour=Harbour(copies, device, 4), log=season(9, 60_000), losses=deque(maxlen=40),
        opt=torch.optim.Adam(pilot.parameters(), lr=7e-4, fused=True),
    )
    callbacks = [Housekeeping(), Reporter(40)]
    while run.number < updates:
        run.number += 1
        for callback in callbacks:
            callback.before(run)
        update(run)
        for callback in callbacks:
            callback.after(run)


if __name__ == "__main__":
    main()
