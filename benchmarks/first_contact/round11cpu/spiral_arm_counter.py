"""Counts the spiral arms of simulated galaxies with a small convolutional network."""

import math
import statistics
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Journal:
    """Keeps what happened in an epoch and sums it up at its end."""

    losses: list = field(default_factory=list)
    hits: list = field(default_factory=list)

    def note(self, loss, hit) -> None:
        self.losses.append(loss)
        self.hits.append(hit)

    def close(self, epoch: int) -> None:
        print(f"epoch {epoch}: loss {statistics.fmean(self.losses):.4f}  accuracy {statistics.fmean(self.hits):.3f}")
        self.losses.clear()
        self.hits.clear()


class Galaxies:
    def __init__(self, side: int, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        axis = torch.linspace(-1, 1, side)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        self.radius = x.hypot(y).clamp(min=1e-3)
        self.angle = torch.atan2(y, x)

    def draw(self, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        arms = torch.randint(1, 5, (n,), generator=self.gen)
        pitch = 3 + 3 * torch.rand(n, 1, 1, generator=self.gen)
        turn = 2 * math.pi * torch.rand(n, 1, 1, generator=self.gen)
        wave = torch.cos(arms.view(-1, 1, 1) * (self.angle + turn) - pitch * torch.log(self.radius))
        image = torch.exp(-2 * self.radius) * (1 + 0.7 * wave)
        return (image + 0.1 * torch.randn(image.shape, generator=self.gen)).unsqueeze(1), arms - 1


class ArmNet(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 4, stride=2)
        self.deep = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(4)])
        self.last = nn.Conv2d(width, 2 * width, 3, stride=2)
        self.score = nn.Linear(2 * width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu_(self.stem(x))
        for conv in self.deep:
            x = F.relu_(conv(x))
        x = F.relu_(self.last(x))
        return self.score(x.amax(dim=(2, 3)))


class Session:
    def __init__(self, images: torch.Tensor, labels: torch.Tensor, width: int, batch: int):
        self.images = images.to(memory_format=torch.channels_last)
        self.labels, self.batch = labels, batch
        self.net = ArmNet(width).to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=2e-3, fused=True)
        self.journal = Journal()

    def epoch(self, number: int) -> None:
        for rows in torch.randperm(len(self.labels)).split(self.batch):
            scores = self.net(self.images[rows])
            loss = F.cross_entropy(scores, self.labels[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            hit = (scores.argmax(1) == self.labels[rows]).float().mean().item()
            self.journal.note(loss.item(), hit)
        self.journal.close(number)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(70)
    sky = Galaxies(side=48, seed=71)
    session = Session(*sky.draw(2048), width=24, batch=32)
    for number in range(14):
        session.epoch(number)
