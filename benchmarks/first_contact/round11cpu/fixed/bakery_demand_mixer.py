"""Daily demand of bakery branches: a wide feature-crossing network on tabular rows."""

import abc
import argparse

import torch
from torch import nn


class Task(abc.ABC):
    @abc.abstractmethod
    def rows(self, n: int) -> tuple[torch.Tensor, torch.Tensor]: ...


class BakeryTask(Task):
    def __init__(self, features: int, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.features = features
        self.weights = torch.randn(features, generator=self.gen) / features**0.5
        self.pairs = torch.randint(features, (20, 2), generator=self.gen)

    def rows(self, n):
        x = torch.randn(n, self.features, generator=self.gen)
        crossed = x[:, self.pairs[:, 0]] * x[:, self.pairs[:, 1]]
        return x, (x @ self.weights + 0.2 * crossed.sum(1)).unsqueeze(1)


class CrossNet(nn.Module):
    """Every layer multiplies the input into a low-rank map of the state."""

    def __init__(self, features: int, layers: int, rank: int, deep: int):
        super().__init__()
        self.narrow = nn.ModuleList([nn.Linear(features, rank, bias=False) for _ in range(layers)])
        self.widen = nn.ModuleList([nn.Linear(rank, features) for _ in range(layers)])
        for linear in self.widen:
            nn.init.normal_(linear.weight, std=0.02)
        self.deep = nn.Sequential(nn.Linear(features, deep), nn.ReLU(), nn.Linear(deep, deep), nn.ReLU())
        self.out = nn.Linear(features + deep, 1)

    def forward(self, x0):
        x = x0
        for narrow, widen in zip(self.narrow, self.widen):
            x = torch.addcmul(x, x0, widen(narrow(x)))
        return self.out(torch.cat([x, self.deep(x0)], dim=1))


def make_optimizer(model: nn.Module, lr: float, decay: float) -> torch.optim.Optimizer:
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, fused=True)


class Loop:
    def __init__(self, task: Task, model: nn.Module, optimizer, batch: int):
        self.task, self.model, self.optimizer, self.batch = task, model, optimizer, batch
        self.criterion = nn.HuberLoss()

    def __iter__(self):
        return self

    def __next__(self) -> float:
        x, y = self.task.rows(self.batch)
        loss = self.criterion(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=80)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--rank", type=int, default=12)
    parser.add_argument("--deep", type=int, default=128)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--steps", type=int, default=1900)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--decay", type=float, default=0.01)
    return parser.parse_args()


def main() -> None:
    args = parse()
    torch.set_num_threads(1)
    torch.manual_seed(33)
    task = BakeryTask(args.features, seed=34)
    model = CrossNet(args.features, args.layers, args.rank, args.deep)
    loop = Loop(task, model, make_optimizer(model, args.lr, args.decay), args.batch)
    recent = []
    for step, loss in zip(range(1, args.steps + 1), loop):
        recent.append(loss)
        if step % 380 == 0:
            print(f"step {step}  huber {sum(recent) / len(recent):.4f}")
            recent.clear()


if __name__ == "__main__":
    main()
