"""Double Q-learning for the pumps of a waterworks, learning while it runs: act, observe, learn, act again."""
import copy
import random
import time
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

HP = dict(
    seed=8, tanks=12, actions=24, width=256, depth=3,
    replay=dict(size=8192, batch=256, warm=300),
    learn=dict(lr=5e-4, gamma=0.97, polyak=0.01, clip=10.0),
    explore=dict(start=1.0, end=0.05, over=1200),
    decisions=2200, report=200,
)


class Waterworks:
    """Tank levels move by demand, which depends on the hour, and by the pump that is on."""

    def __init__(self, tanks, actions, seed):
        g = torch.Generator().manual_seed(seed)
        self.rng = g
        self.effect = torch.rand(actions, tanks, generator=g) * 0.12
        self.cost = torch.rand(actions, generator=g) * 0.3
        self.base = torch.rand(tanks, generator=g) * 0.05 + 0.02
        self.levels = torch.full((tanks,), 0.5)
        self.hour = 0

    @property
    def state(self):
        clock = torch.tensor([self.hour % 24 / 12 - 1, float(self.hour % 168 >= 120)])
        return torch.cat([self.levels, clock, self.levels.amin().view(1), self.levels.amax().view(1)])

    def step(self, action):
        swing = 1.0 + 0.5 * (8 <= self.hour % 24 <= 20)
        noise = torch.rand(self.levels.shape, generator=self.rng)
        self.levels = (self.levels + self.effect[action] - 2 * swing * noise * self.base).clamp_(0.0, 1.0)
        self.hour += 1
        dry = float((self.levels < 0.15).sum())
        spilt = float((self.levels > 0.95).sum())
        return 1.0 - 0.5 * dry - 0.2 * spilt - float(self.cost[action])


class Ring:
    def __init__(self, size, dim):
        self.state, self.after = torch.zeros(size, dim), torch.zeros(size, dim)
        self.action = torch.zeros(size, 1, dtype=torch.long)
        self.reward = torch.zeros(size, 1)
        self.size, self.at, self.filled = size, 0, 0

    def put(self, state, action, reward, after):
        i = self.at
        self.state[i], self.after[i] = state, after
        self.action[i, 0], self.reward[i, 0] = action, reward
        self.at = (i + 1) % self.size
        self.filled = min(self.filled + 1, self.size)

    def draw(self, count):
        rows = torch.randint(0, self.filled, (count,))
        return self.state[rows], self.action[rows], self.reward[rows], self.after[rows]


def mlp(inputs, width, depth, outputs):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(inputs, width), nn.ReLU(inplace=True)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


class Agent:
    def __init__(self, dim, hp):
        self.hp = hp
        self.net = mlp(dim, hp["width"], hp["depth"], hp["actions"])
        self.slow = copy.deepcopy(self.net).requires_grad_(False)
        self.weights, self.slow_weights = list(self.net.parameters()), list(self.slow.parameters())
        self.opt = torch.optim.Adam(self.weights, lr=hp["learn"]["lr"], fused=True)

    @torch.inference_mode()
    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(self.hp["actions"])
        return int(self.net(state).argmax())

    def learn(self, state, action, reward, after):
        c = self.hp["learn"]
        with torch.no_grad():
            choice = self.net(after).argmax(1, keepdim=True)
            goal = torch.add(reward, self.slow(after).gather(1, choice), alpha=c["gamma"])
        loss = F.smooth_l1_loss(self.net(state).gather(1, action), goal)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.weights, c["clip"])
        self.opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.slow_weights, self.weights, c["polyak"])
        return loss.detach()


def run(hp):
    random.seed(hp["seed"])
    torch.manual_seed(hp["seed"])
    plant = Waterworks(hp["tanks"], hp["actions"], hp["seed"])
    state = plant.state
    agent, ring = Agent(len(state), hp), Ring(hp["replay"]["size"], len(state))
    rewards, losses = deque(maxlen=hp["report"]), deque(maxlen=hp["report"])
    clock = time.perf_counter()
    for n in range(1, hp["replay"]["warm"] + hp["decisions"] + 1):
        x = hp["explore"]
        epsilon = max(x["end"], x["start"] - n / x["over"])
        action = agent.act(state, epsilon)
        reward = plant.step(action)
        after = plant.state
        ring.put(state, action, reward, after)
        state = after
        rewards.append(reward)
        if n > hp["replay"]["warm"]:
            losses.append(agent.learn(*ring.draw(hp["replay"]["batch"])))
        if n % hp["report"] == 0 and losses:
            now = time.perf_counter()
            print(f"{n:5d} hours  reward {sum(rewards) / len(rewards):+.3f}  loss {torch.stack(list(losses)).mean():.4f}"
                  f"  eps {epsilon:.2f}  {1000 * (now - clock) / hp['report']:.1f} ms")
            clock = now


if __name__ == "__main__":
    run(HP)
