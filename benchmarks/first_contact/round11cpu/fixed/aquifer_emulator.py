"""Emulates the head of a confined aquifer on a grid of wells from pumping schedules.

The network mixes along the wells and along the months in turn.  Configuration by a plain dict.
"""

import torch
from torch import nn

CONFIG = dict(wells=64, months=48, inner=128, rounds=4, batch=10, updates=800, step_size=1e-3)


class MonthScale(nn.Module):
    """Brings every well's record to zero mean and unit spread, then rescales it."""

    def __init__(self, features: int, floor: float = 1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(features))
        self.shift = nn.Parameter(torch.zeros(features))
        self.floor = floor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.layer_norm(x, x.shape[-1:], self.gain, self.shift, self.floor)


class MixRound(nn.Module):
    def __init__(self, wells: int, features: int, inner: int):
        super().__init__()
        self.scale_a = MonthScale(features)
        self.scale_b = MonthScale(features)
        self.couple = nn.Linear(wells, wells)
        self.evolve = nn.Sequential(nn.Linear(features, inner), nn.ReLU(), nn.Linear(inner, features))

    def forward(self, x):
        x = x + self.couple(self.scale_a(x).transpose(1, 2)).transpose(1, 2)
        return x + self.evolve(self.scale_b(x))


def build(cfg) -> nn.Module:
    features = 96
    rounds = [MixRound(cfg["wells"], features, cfg["inner"]) for _ in range(cfg["rounds"])]
    return nn.Sequential(nn.Linear(cfg["months"], features), *rounds, nn.Linear(features, cfg["months"]))


def response_matrix(wells: int, gen: torch.Generator) -> torch.Tensor:
    where = torch.rand(wells, 2, generator=gen)
    distance = torch.cdist(where, where)
    return torch.exp(-4.0 * distance)


def pumping(batch: int, wells: int, months: int, gen: torch.Generator) -> torch.Tensor:
    base = torch.rand(batch, wells, 1, generator=gen)
    season = torch.sin(torch.arange(months) * torch.pi / 6 + torch.rand(batch, 1, 1, generator=gen))
    return base * (1 + 0.5 * season) + 0.1 * torch.randn(batch, wells, months, generator=gen)


def drawdown(rates: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
    months = rates.shape[-1]
    lag = torch.arange(months)[:, None] - torch.arange(months)[None]
    decay = torch.where(lag >= 0, torch.exp(-0.15 * lag.clamp(min=0)), torch.zeros(()))
    return (response @ rates) @ decay.T / 20.0


def main(cfg=CONFIG):
    torch.set_num_threads(1)
    torch.manual_seed(77)
    gen = torch.Generator().manual_seed(78)
    rates = pumping(1000, cfg["wells"], cfg["months"], gen)
    heads = drawdown(rates, response_matrix(cfg["wells"], gen))
    emulator = build(cfg)
    optimizer = torch.optim.Adam(emulator.parameters(), lr=cfg["step_size"], fused=True)
    for update in range(cfg["updates"]):
        rows = torch.randint(len(rates), (cfg["batch"],), generator=gen)
        loss = nn.functional.mse_loss(emulator(rates[rows]), heads[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (update + 1) % 200 == 0:
            print(f"update {update + 1}: error {loss.item():.5f}")


if __name__ == "__main__":
    main()
