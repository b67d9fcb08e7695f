"""Recurrent Q-learning (R2D2 style) from logged irrigation seasons.

The agent sees noisy soil sensors of a plot and decides how much water to give each day. Seasons were
recorded under a random policy; learning is off-line on whole seasons with stored first states.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn

DAYS = 40
SENSORS = 16
DOSES = 6


class Memory(nn.Module):
    """Reads a season of sensor values, a day at a time."""

    def __init__(self, sensors, width):
        super().__init__()
        self.width = width
        self.cell = nn.LSTMCell(sensors, width)

    def forward(self, season):
        state = carry = season.new_zeros(season.shape[0], self.width)
        days = []
        for today in season.unbind(1):  # flaw: python-loop-over-tensor
            state, carry = self.cell(today, (state, carry))  # flaw: python-loop-over-tensor
            days.append(state)
        return torch.stack(days, dim=1)


class RecurrentQ(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.memory = Memory(SENSORS, width)
        self.head = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, DOSES))

    def forward(self, season):
        return self.head(self.memory(season))


def log_seasons(count, generator):
    """Soil water with rain, heat and the random doses of the recorded policy."""
    view = torch.randn(3, SENSORS, generator=generator)
    doses = torch.randint(DOSES, (count, DAYS), generator=generator)
    rain = torch.rand(count, DAYS, generator=generator).pow(4)
    heat = 0.25 + 0.2 * torch.rand(count, DAYS, generator=generator)
    water = torch.full((count,), 0.5)
    seen, rewards = [], []
    for day in range(DAYS):
        facts = torch.stack([water, rain[:, day], heat[:, day]], dim=1)
        seen.append(facts @ view + 0.1 * torch.randn(count, SENSORS, generator=generator))
        water = (water + rain[:, day] + 0.1 * doses[:, day] - heat[:, day]).clamp(0, 1.5)
        rewards.append(1 - (water - 0.8).abs() - 0.05 * doses[:, day])
    return torch.stack(seen, 1), doses, torch.stack(rewards, 1)


class SeasonReplay:
    def __init__(self, seasons, generator):
        self.sensors, self.doses, self.rewards = seasons
        self.generator = generator

    def draw(self, rows):
        picked = torch.randint(len(self.sensors), (rows,), generator=self.generator)
        return self.sensors[picked], self.doses[picked], self.rewards[picked]


class Learner:
    discount = 0.95
    copy_each = 60

    def __init__(self):
        self.net = RecurrentQ()
        self.target = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True)
        self.updates = 0

    def returns(self, sensors, rewards, values):
        with torch.no_grad():
            best = values.argmax(2, keepdim=True)
            later = self.target(sensors).gather(2, best).squeeze(2)
            return rewards[:, :-1] + self.discount * later[:, 1:]

    def update(self, sensors, doses, rewards):
        values = self.net(sensors)
        wanted = self.returns(sensors, rewards, values)
        chosen = values[:, :-1].gather(2, doses[:, :-1, None]).squeeze(2)
        loss = F.smooth_l1_loss(chosen, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.copy_each == 0:
            self.target.load_state_dict(self.net.state_dict())
        return loss.detach()


def main(updates=2000, rows=32, report=200):
    torch.manual_seed(31)
    generator = torch.Generator().manual_seed(32)
    replay = SeasonReplay(log_seasons(2000, generator), generator)
    learner = Learner()
    mean = torch.zeros(())
    for update in range(1, updates + 1):
        mean += learner.update(*replay.draw(rows)) / report
        if update % report == 0:
            print(f"update {update:5d}  TD loss {mean.item():.5f}", flush=True)
            mean.zero_()


if __name__ == "__main__":
    main()
