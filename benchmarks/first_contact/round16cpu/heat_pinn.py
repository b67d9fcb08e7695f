"""A deep, narrow network learns the temperature field of a rod; the optimizer is our own."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") is not None
BLOCKS = 4 if TINY else 48
POINTS = 64 if TINY else 256
STEPS = 6 if TINY else 200


class DecayedAdam:
    """Adam with decoupled weight decay."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.decay = lr, betas, eps, decay
        self.first = [torch.zeros_like(p) for p in self.params]
        self.second = [torch.zeros_like(p) for p in self.params]
        self.t = 0

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        size = self.lr / (1 - b1 ** self.t)
        root = (1 - b2 ** self.t) ** 0.5
        for p, m, v in zip(self.params, self.first, self.second):  # flaw: parameter-loop
            p.mul_(1 - self.lr * self.decay)  # flaw: parameter-loop
            m.mul_(b1).add_(p.grad, alpha=1 - b1)  # flaw: parameter-loop
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)  # flaw: parameter-loop
            p.addcdiv_(m, v.sqrt().div_(root).add_(self.eps), value=-size)  # flaw: parameter-loop


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lift = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.lift(self.norm(x)))


class Rod(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.read = nn.Linear(2, width)
        self.deep = nn.Sequential(*(Block(width) for _ in range(BLOCKS)))
        self.heat = nn.Linear(width, 1)

    def forward(self, where):
        return self.heat(self.deep(self.read(where)))


def measured(where):
    place, time = where[:, :1], where[:, 1:]
    return torch.sin(3.1416 * place) * torch.exp(-time) + 0.3 * torch.sin(9.4248 * place) * torch.exp(-9 * time)


def main():
    torch.manual_seed(0)
    rod = Rod()
    opt = DecayedAdam(rod.parameters(), lr=5e-4)
    for step in range(STEPS):
        where = torch.rand(POINTS, 2)
        loss = F.mse_loss(rod(where), measured(where))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % (STEPS // 2) == 0:
            print(f"{step + 1:4d}  {loss.item():.4f}")


main()
