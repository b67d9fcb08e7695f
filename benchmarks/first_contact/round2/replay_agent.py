"""Q-learning with an episodic store of Python objects next to the learner."""
import gc
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Episode:
    __slots__ = ("frames", "rewards", "info")

    def __init__(self, n):
        self.frames = [(i, i + 1) for i in range(n)]
        self.rewards = [random.random() for _ in range(n)]
        self.info = {"len": n, "tags": ["a", "b"]}


class Store:
    def __init__(self, size):
        self.episodes = deque((Episode(30) for _ in range(size)), maxlen=size)

    def add(self):
        self.episodes.append(Episode(30))

    def best(self):
        return max(random.choice(self.episodes).rewards[:4])


class Learner:
    def __init__(self):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        h = 2048
        self.q = nn.Sequential(nn.Linear(512, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 16)).to(self.device)
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-4, fused=True)
        self.obs = torch.randn(4, 8192, 512, device=self.device)
        self.act = torch.randint(0, 16, (4, 8192, 1), device=self.device)

    def update(self, i, reward):
        with torch.autocast(self.device, dtype=torch.bfloat16):
            value = self.q(self.obs[i % 4]).gather(1, self.act[i % 4])
        loss = (value.float() - reward).square().mean()
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()


def main():
    store, learner = Store(6000), Learner()
    for i in range(1000):
        store.add()
        loss = learner.update(i, store.best())
        gc.collect()  # flaw: gc-pause-in-step
        if i % 100 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
