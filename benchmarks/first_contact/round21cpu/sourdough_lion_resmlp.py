"""How long will the dough take?  Tabular regression with a deep, narrow residual net and the Lion optimiser."""
import logging
from typing import Iterator

import torch
from torch import Tensor, nn

log = logging.getLogger("sourdough")


def evolve(weight, grad, momentum, lr, decay, fast, slow):
    weight.mul_(1 - lr * decay)  # flaw: parameter-loop
    direction = momentum.clone().mul_(fast).add_(grad, alpha=1 - fast).sign_()  # flaw: parameter-loop
    weight.add_(direction, alpha=-lr)  # flaw: parameter-loop
    momentum.mul_(slow).add_(grad, alpha=1 - slow)  # flaw: parameter-loop


class Lion(torch.optim.Optimizer):
    """Evolved sign momentum (Chen et al., 2023)."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["momentum"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:  # flaw: parameter-loop
                if p.grad is not None:
                    momentum = self.state[p]["momentum"]
                    evolve(p.data, p.grad, momentum, group["lr"], group["weight_decay"], *group["betas"])  # flaw: parameter-loop


class Fold(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(self.norm(x))))


class DoughNet(nn.Module):
    def __init__(self, inputs: int, width: int = 32, folds: int = 48):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.folds = nn.Sequential(*(Fold(width) for _ in range(folds)))
        self.leave = nn.Linear(width, 1)
        for fold in self.folds:
            nn.init.zeros_(fold.down.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(self.folds(self.enter(x))).squeeze(-1)


class Bakery:
    def __init__(self, loaves: int, inputs: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        self.recipe = torch.rand(loaves, inputs, generator=g) * 2 - 1
        warm, wet, starter, salt = self.recipe[:, :4].T
        hours = torch.exp(-1.2 * warm) * (1.4 - 0.6 * starter) + 0.3 * (wet - salt).sin()
        hours += (self.recipe[:, 4:] * torch.linspace(0, 0.2, inputs - 4)).sum(1)
        hours += 0.05 * torch.randn(loaves, generator=g)
        self.hours = (hours - hours.mean()) / hours.std()
        self.g = g

    def shifts(self, size: int, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(count):
            pick = torch.randint(len(self.hours), (size,), generator=self.g)
            yield self.recipe[pick], self.hours[pick]


def bake(steps: int = 2000, size: int = 64, every: int = 100) -> DoughNet:
    bakery = Bakery(20_000, 16, seed=8)
    net = DoughNet(16)
    optimiser = Lion(net.parameters(), lr=2e-4, weight_decay=0.01)
    measure = nn.HuberLoss()
    total = torch.zeros(())
    for step, (recipe, hours) in enumerate(bakery.shifts(size, steps), start=1):
        loss = measure(net(recipe), hours)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total += loss.detach()
        if step % every == 0:
            log.info("%d: huber %.5f", step, total.item() / every)
            total.zero_()
    return net


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(8)
    bake()
