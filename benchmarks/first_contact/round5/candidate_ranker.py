"""Rank each query's own candidate list (listwise softmax)."""
import os

import torch
import torch.nn.functional as F
from torch import nn


class Scorer(nn.Module):
    def __init__(self, q_dim, c_dim, width):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(q_dim, width), nn.ReLU(), nn.Linear(width, width))
        self.c = nn.Sequential(nn.Linear(c_dim, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, queries, lists):
        return self.match(self.q(queries), self.c(lists))

    @staticmethod
    def match(q, c):
        rows = []
        for i in range(q.size(0)):  # flaw: python-loop-over-tensor
            rows.append(c[i].mv(q[i]))  # flaw: python-loop-over-tensor
        return torch.stack(rows) / q.size(-1) ** 0.5  # flaw: python-loop-over-tensor


class Task:
    def __init__(self, small, device):
        self.queries, self.per, self.qd, self.cd, self.width = (8, 5, 6, 7, 16) if small else (384, 256, 128, 256, 512)
        self.steps = 30 if small else 70
        g = torch.Generator(device).manual_seed(3)
        self.q = torch.randn(3, self.queries, self.qd, generator=g, device=device)
        self.c = torch.randn(3, self.queries, self.per, self.cd, generator=g, device=device)
        self.gold = torch.randint(self.per, (3, self.queries), generator=g, device=device)

    def __getitem__(self, k):
        k %= 3
        return self.q[k], self.c[k], self.gold[k]


def train(task, device):
    net = Scorer(task.qd, task.cd, task.width).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    seen = torch.zeros((), device=device)
    for k in range(task.steps):
        q, c, gold = task[k]
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = net(q, c)
            loss = F.cross_entropy(scores, gold)
        loss.backward()
        opt.step()
        opt.zero_grad()
        seen += loss.detach()
        if k % 20 == 19:
            print(k + 1, (seen / 20).item())
            seen.zero_()
    return net


if __name__ == "__main__":
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    train(Task(os.environ.get("SMALL") == "1", dev), dev)
