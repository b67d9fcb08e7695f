"""MLP surrogate of a reservoir simulator; wide token mixing with smooth gates."""
import math

import torch
from torch import nn


class SmoothGate(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = math.sqrt(2.0 / math.pi)

    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(self.scale * (x + 0.044715 * x ** 3)))  # flaw: hand-written-activation


class ChannelMix(nn.Module):
    def __init__(self, dim, ratio):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.wide = nn.Linear(dim, ratio * dim)
        self.gate = SmoothGate()
        self.narrow = nn.Linear(ratio * dim, dim)

    def forward(self, x):
        return x + self.narrow(self.gate(self.wide(self.norm(x))))


class Surrogate(nn.Module):
    def __init__(self, inputs=12, dim=64, ratio=6, depth=3, outputs=4):
        super().__init__()
        self.lift = nn.Linear(inputs, dim)
        self.body = nn.Sequential(*[ChannelMix(dim, ratio) for _ in range(depth)])
        self.read = nn.Linear(dim, outputs)

    def forward(self, x):
        return self.read(self.body(self.lift(x)))


class Trainer:
    def __init__(self, model, lr=1e-3, batch=2048):
        self.model, self.batch = model, batch
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
        self.loss = nn.SmoothL1Loss()
        self.truth = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4)).requires_grad_(False)

    def batch_of_runs(self):
        wells = torch.rand(self.batch, 12)
        return wells, self.truth(wells)

    def step(self):
        x, y = self.batch_of_runs()
        loss = self.loss(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()

    def fit(self, steps):
        recent = torch.zeros(20)
        for i in range(steps):
            recent[i % 20] = self.step()
        return float(recent.mean())


if __name__ == "__main__":
    torch.manual_seed(8)
    print(f"loss {Trainer(Surrogate()).fit(320):.5f}")
