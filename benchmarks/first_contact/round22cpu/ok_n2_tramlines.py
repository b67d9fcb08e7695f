"""Delays along tram lines: message passing over a learned network of stops."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Settings:
    stops: int = 128
    features: int = 16
    width: int = 64
    rank: int = 16
    rounds: int = 3
    days: int = 1024
    batch: int = 32
    epochs: int = 14
    lr: float = 2e-3
    seed: int = 9


def days(s: Settings):
    """Delays that depend on a hidden network of the stops."""
    gen = torch.Generator().manual_seed(s.seed)
    hidden = torch.rand(s.stops, s.stops, generator=gen).square().square()
    hidden /= hidden.sum(1, keepdim=True)
    x = torch.randn(s.days, s.stops, s.features, generator=gen)
    reach = hidden @ x[..., :4] * s.stops**0.5
    y = torch.tanh(reach.sum(-1)) + 0.1 * torch.randn(s.days, s.stops, generator=gen)
    return x, y


class Round(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, width)
        self.near = nn.Linear(width, width, bias=False)

    def forward(self, h, graph):
        z = self.norm(h)
        return h + F.relu(self.own(z) + torch.matmul(graph, self.near(z)))


class Delays(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.sends = nn.Parameter(torch.randn(s.stops, s.rank))
        self.hears = nn.Parameter(torch.randn(s.rank, s.stops))
        self.enter = nn.Linear(s.features, s.width)
        self.rounds = nn.ModuleList(Round(s.width) for _ in range(s.rounds))
        self.leave = nn.Linear(s.width, 1)

    def forward(self, x):
        graph = F.softmax(F.relu(self.sends @ self.hears), dim=1)
        h = self.enter(x)
        for round_ in self.rounds:
            h = round_(h, graph)
        return self.leave(h).squeeze(-1)


def fit(s=Settings()):
    torch.manual_seed(s.seed)
    x, y = days(s)
    model = Delays(s)
    optimizer = torch.optim.Adam(model.parameters(), lr=s.lr, fused=True)
    for epoch in range(s.epochs):
        seen = torch.zeros(())
        parts = torch.randperm(s.days).split(s.batch)
        for part in parts:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x[part]), y[part])
            loss.backward()
            optimizer.step()
            seen += loss.detach()
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1}: {seen.item() / len(parts):.5f}", flush=True)
    return model


if __name__ == "__main__":
    fit()
