"""Q-learning over many small grid worlds kept on the device."""
import os
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Options:
    worlds: int = 256
    size: int = 24
    hidden: int = 1024
    memory: int = 128
    sample: int = 4096
    steps: int = 100
    gamma: float = 0.98
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))


class Worlds:
    def __init__(self, o):
        self.o = o
        self.at = torch.randint(o.size, (o.worlds, 2), device=o.device)
        self.goal = torch.randint(o.size, (o.worlds, 2), device=o.device)
        self.moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]], device=o.device)

    def observe(self):
        rows = F.one_hot(torch.cat([self.at, self.goal], 1), self.o.size)
        return rows.flatten(1).float()

    def act(self, choice):
        self.at = (self.at + self.moves[choice]).clamp(0, self.o.size - 1)
        done = (self.at == self.goal).all(1)
        reward = done.float() - 0.01
        self.restart(done)
        return reward, done

    def restart(self, done):
        fresh = torch.randint(self.o.size, (self.o.worlds, 2), device=self.o.device)
        for i in range(self.o.worlds):  # flaw: sync-in-step|python-loop-over-tensor
            if done[i]:  # flaw: sync-in-step|python-loop-over-tensor
                self.at[i] = fresh[i]  # flaw: sync-in-step|python-loop-over-tensor


class Memory:
    def __init__(self, o):
        n, width = o.memory * o.worlds, 4 * o.size
        self.n, self.ptr = n, 0
        self.before = torch.zeros(n, width, device=o.device)
        self.after = torch.zeros(n, width, device=o.device)
        self.rest = torch.zeros(n, 3, device=o.device)

    def add(self, before, choice, reward, done, after):
        span = slice(self.ptr, self.ptr + len(before))
        self.before[span], self.after[span] = before, after
        self.rest[span] = torch.stack([choice.float(), reward, done.float()], 1)
        self.ptr = (self.ptr + len(before)) % self.n

    def draw(self, k):
        i = torch.randint(self.n, (k,), device=self.rest.device)
        choice, reward, done = self.rest[i].unbind(1)
        return self.before[i], choice.long(), reward, done, self.after[i]


def q_net(o):
    h = o.hidden
    return nn.Sequential(
        nn.Linear(4 * o.size, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 4)
    ).to(o.device)


def main(o):
    torch.manual_seed(8)
    worlds, memory, q, slow = Worlds(o), Memory(o), q_net(o), q_net(o)
    slow.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-4, fused=True)
    earned = torch.zeros((), device=o.device)
    for step in range(o.steps):
        with torch.autocast(o.device.type, dtype=torch.bfloat16):
            before = worlds.observe()
            with torch.no_grad():
                greedy = q(before).argmax(1)
            wild = torch.rand(o.worlds, device=o.device) < 0.2
            choice = torch.where(wild, torch.randint(4, (o.worlds,), device=o.device), greedy)
            reward, done = worlds.act(choice)
            memory.add(before, choice, reward, done, worlds.observe())
            s, a, r, d, s2 = memory.draw(o.sample)
            with torch.no_grad():
                target = r + o.gamma * (1 - d) * slow(s2).max(1).values
            loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1).float(), target.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            slow.load_state_dict(q.state_dict())
        earned += reward.sum()
    print("earned", earned.item())


if __name__ == "__main__":
    main(Options(8, 6, 32, 4, 16, 30) if os.environ.get("SMALL") == "1" else Options())
