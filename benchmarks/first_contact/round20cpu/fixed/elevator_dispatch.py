"""Elevator dispatching by double Q-learning beside the old controller: each car has a small head on a shared view."""
import copy

import torch
from torch import nn

CONFIG = dict(cars=10, floors=16, towers=128, batch=48, steps=500, gamma=0.97, tau=0.01, lr=4e-4, width=256)
CHOICES = 3  # down, stay, up


class Building:
    """Many buildings at once; a state has the calls of each floor and the places of the cars."""

    def __init__(self, count, cars, floors):
        self.size = (count, cars, floors)
        self.calls = torch.zeros(count, floors)
        self.cars = torch.randint(floors, (count, cars))

    def view(self):
        places = torch.zeros(self.size).scatter_(2, self.cars[:, :, None], 1.0)
        return torch.cat([self.calls, places.flatten(1)], 1)

    def habit(self, whim):
        """The old controller: cars go to the floor with a call that is nearest, and now and then anywhere."""
        far = (torch.arange(self.size[2]) - self.cars[:, :, None]).abs() + 100 * (1 - self.calls[:, None])
        choice = (far.argmin(2) - self.cars).sign() + 1
        return torch.where(torch.rand(choice.shape) < whim, torch.randint(CHOICES, choice.shape), choice)

    def move(self, choice):
        self.cars = (self.cars + choice - 1).clamp_(0, self.size[2] - 1)
        served = self.calls.gather(1, self.cars).sum(1)
        self.calls.scatter_(1, self.cars, 0.0)
        self.calls += (torch.rand(self.calls.shape) < 0.04).float()
        return served - 0.05 * self.calls.sum(1)


class Dispatcher(nn.Module):
    def __init__(self, cars, floors, width):
        super().__init__()
        inputs = floors * (cars + 1)
        self.shared = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CHOICES)
            )
            for _ in range(cars)
        )

    def forward(self, view):
        common = self.shared(view)
        return torch.stack([head(common) for head in self.heads], 1)


class Memory:
    def __init__(self, room, view, cars):
        self.before = torch.zeros(room, view)
        self.after = torch.zeros(room, view)
        self.choice = torch.zeros(room, cars, dtype=torch.long)
        self.reward = torch.zeros(room)
        self.at, self.filled, self.room = 0, 0, room

    def put(self, before, choice, reward, after):
        rows = slice(self.at, self.at + len(before))
        self.before[rows], self.choice[rows], self.reward[rows], self.after[rows] = before, choice, reward, after
        self.at = (self.at + len(before)) % self.room
        self.filled = max(self.filled, rows.stop)

    def draw(self, count):
        rows = torch.randint(self.filled, (count,))
        return self.before[rows], self.choice[rows], self.reward[rows], self.after[rows]


class Agent:
    def __init__(self, config):
        self.config = config
        self.net = Dispatcher(config["cars"], config["floors"], config["width"])
        self.slow = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=config["lr"], fused=True)
        self.pairs = [list(self.slow.parameters()), list(self.net.parameters())]

    def learn(self, before, choice, reward, after):
        with torch.no_grad():
            following = self.net(after).argmax(2, keepdim=True)
            future = self.slow(after).gather(2, following).squeeze(2)
            target = reward[:, None] + self.config["gamma"] * future
        value = self.net(before).gather(2, choice[:, :, None]).squeeze(2)
        loss = nn.functional.smooth_l1_loss(value, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(*self.pairs, self.config["tau"])
        return loss.detach()


def main(config):
    torch.manual_seed(14)
    world = Building(config["towers"], config["cars"], config["floors"])
    agent = Agent(config)
    view = world.view()
    memory = Memory(64 * config["towers"], view.shape[1], config["cars"])
    for step in range(config["steps"]):
        choice = world.habit(whim=0.4)
        reward = world.move(choice)
        after = world.view()
        memory.put(view, choice, reward, after)
        view = after
        loss = agent.learn(*memory.draw(config["batch"]))
        if step % 100 == 99:
            waiting = world.calls.sum(1).mean()
            print(f"step {step + 1}: reward {reward.mean():.3f}, waiting {waiting:.2f}, loss {loss:.4f}")


main(CONFIG)
