"""Learns the value of soaring states: scripted pilots fly on the host, the critic learns on the device."""
import copy
import functools
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cuda.matmul.allow_tf32 = True


def fenced(stage):
    """Failures of the device are raised in the stage that caused them."""

    @functools.wraps(stage)
    def wrapper(*args, **kwargs):
        result = stage(*args, **kwargs)
        return result

    return wrapper


class Sky:
    """Gliders in a field of drifting thermals."""

    def __init__(self, gliders, thermals, seed=0):
        self.rng = np.random.default_rng(seed)
        self.place = self.rng.uniform(0, 10, (gliders, 3)).astype(np.float32)
        self.speed = self.rng.normal(0, 1, (gliders, 3)).astype(np.float32)
        self.thermal = self.rng.uniform(0, 10, (thermals, 2)).astype(np.float32)

    def fly(self):
        before = self.observe()
        gap = self.place[:, None, :2] - self.thermal
        far = np.einsum("gtk,gtk->gt", gap, gap)
        lift = np.exp(-far).sum(1)
        near = far.argmin(1)
        toward = self.thermal[near] - self.place[:, :2]
        self.speed[:, :2] += 0.05 * toward
        self.speed[:, 2] = lift - 0.4
        self.speed *= 0.99
        self.place = np.mod(self.place + 0.02 * self.speed, 10)
        self.thermal = np.mod(self.thermal + 0.01, 10)
        return np.concatenate([before, self.observe(), lift[:, None]], 1)

    def observe(self):
        return np.concatenate([self.place, self.speed, self.place[:, :2] - 5], 1)


class Logbook:
    """Ring of transitions on the device."""

    def __init__(self, size, width):
        self.rows = torch.zeros(size, width, device=DEV)
        self.end = 0

    def write(self, news):
        news = torch.from_numpy(news)
        if DEV.type == "cuda":
            news = news.pin_memory()
        at = self.end % len(self.rows)
        self.rows[at : at + len(news)].copy_(news, non_blocking=True)
        self.end += len(news)

    def draw(self, number):
        filled = min(self.end, len(self.rows))
        return self.rows[torch.randint(0, filled, (number,), device=DEV)]


class Critic:
    def __init__(self, width):
        layers = [nn.Linear(8, width), nn.SiLU()]
        for _ in range(2):
            layers += [nn.Linear(width, width), nn.SiLU()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1)).to(DEV)
        self.slow = copy.deepcopy(self.net).requires_grad_(False)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-4, fused=True)
        self.total = torch.zeros((), device=DEV)

    @fenced
    def learn(self, rows):
        state, later, reward = rows[:, :8], rows[:, 8:16], rows[:, 16:]
        with torch.autocast(DEV.type, torch.bfloat16):
            with torch.no_grad():
                goal = reward + 0.97 * self.slow(later).float()
            guess = self.net(state).float()
        loss = F.smooth_l1_loss(guess, goal)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        torch._foreach_lerp_(list(self.slow.parameters()), list(self.net.parameters()), 0.01)
        self.total += loss.detach()


def main(gliders, thermals, width, rows, rounds):
    torch.manual_seed(0)
    sky, book, critic = Sky(gliders, thermals), Logbook(gliders * 64, 17), Critic(width)
    for _ in range(rounds):
        book.write(sky.fly())
        critic.learn(book.draw(rows))
    print(f"temporal difference {critic.total.item() / rounds:.4f}")


if __name__ == "__main__":
    main(*((32, 8, 16, 64, 6) if TINY else (1536, 192, 2048, 65536, 480)))
