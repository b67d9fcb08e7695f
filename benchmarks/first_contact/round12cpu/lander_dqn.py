"""Double DQN on a toy lander; transitions are kept as Python objects."""
import collections
import gc  # flaw: gc-pause-in-step
import random

import numpy as np
import torch
from torch import nn

STEPS = 240
Transition = collections.namedtuple("Transition", "obs action reward nxt done info")


class Lander:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.height, self.speed, self.side = 10.0, 0.0, self.rng.uniform(-1, 1)
        return self.obs()

    def obs(self):
        return (self.height / 10, self.speed / 5, self.side)

    def act(self, a):
        self.speed += -0.3 + (0.6 if a == 1 else 0.0)
        self.side += {2: -0.1, 3: 0.1}.get(a, 0.0) + self.rng.gauss(0, 0.02)
        self.height += 0.2 * self.speed
        done = self.height <= 0 or self.height > 14
        reward = -abs(self.side) - (abs(self.speed) if done else 0.0)
        return self.obs(), reward, done, {"fuel": a == 1, "trace": [self.height, self.speed]}


class Memory:
    def __init__(self, size):
        self.items = collections.deque(maxlen=size)

    def fill(self, env, n):
        obs = env.reset()
        for _ in range(n):
            a = env.rng.randrange(4)
            nxt, r, done, info = env.act(a)
            self.items.append(Transition(obs, a, r, nxt, done, info))
            obs = env.reset() if done else nxt

    def draw(self, n, rng):
        rows = [self.items[rng.randrange(len(self.items))] for _ in range(n)]
        cols = list(zip(*rows))
        obs, nxt = (torch.from_numpy(np.array(c, np.float32)) for c in (cols[0], cols[3]))
        return obs, torch.tensor(cols[1]), torch.tensor(cols[2]), nxt, torch.tensor(cols[4], dtype=torch.float32)


def head():
    return nn.Sequential(nn.Linear(3, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))


def main():
    torch.manual_seed(2)
    rng, env, memory = random.Random(2), Lander(2), Memory(20_000)
    memory.fill(env, 2_000)
    q, q_target = head(), head()
    q_target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=5e-4, fused=True)
    for step in range(1, STEPS + 1):
        memory.fill(env, 32)
        obs, act, rew, nxt, done = memory.draw(256, rng)
        with torch.no_grad():
            pick = q(nxt).argmax(1, keepdim=True)
            goal = rew + 0.99 * (1 - done) * q_target(nxt).gather(1, pick).squeeze(1)
        loss = nn.functional.huber_loss(q(obs).gather(1, act.unsqueeze(1)).squeeze(1), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:  # flaw: gc-pause-in-step
            gc.collect()  # flaw: gc-pause-in-step
        if step % 60 == 0:
            q_target.load_state_dict(q.state_dict())
            print(f"step {step}: loss {loss.item():.4f}")


main()
