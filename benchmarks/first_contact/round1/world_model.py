"""A latent world model that frees what it used after each update."""
import gc
from collections import deque

import torch
from torch import nn
import torch.nn.functional as F


class World(nn.Module):
    def __init__(self, state=512, action=16, hidden=2048):
        super().__init__()
        self.step = nn.Sequential(nn.Linear(state + action, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, state))

    def forward(self, s, a):
        return s + self.step(torch.cat([s, a], -1))


class Replay:
    def __init__(self, device):
        self.notes = [{"episode": i, "tags": [str(i), i % 7], "span": (i, i + 1)} for i in range(40_000)]
        self.s = torch.randn(64, 8192, 512, device=device)
        self.a = torch.randn(64, 8192, 16, device=device)
        self.recent = deque(maxlen=10)

    def sample(self, k):
        i = k % 63
        return self.s[i], self.a[i], self.s[i + 1]


def release(*things):
    del things
    gc.collect()  # flaw: gc-pause-in-step


def learn(updates=320):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    world, replay = World().to(device), Replay(device)
    opt = torch.optim.Adam(world.parameters(), lr=3e-4, fused=True)
    for k in range(updates):
        s, a, after = replay.sample(k)
        with torch.autocast(device, torch.bfloat16):
            for _ in range(3):
                s = world(s, a)
            loss = F.mse_loss(s.float(), after)
        opt.zero_grad()
        loss.backward()
        opt.step()
        release(s, a, after)


learn()
