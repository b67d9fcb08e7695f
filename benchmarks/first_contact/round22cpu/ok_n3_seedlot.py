"""Grades seed lots from tray pictures: germinates, mouldy, broken or stone."""
import collections
import contextlib
import time

import torch
from torch import nn

GRADES = ("germinates", "mouldy", "broken", "stone")


class Trays:
    """A pool of pictures; a tray is a random choice of them."""

    def __init__(self, pool=2048, edge=64, seed=6):
        self.gen = torch.Generator().manual_seed(seed)
        ys, xs = torch.meshgrid(*[torch.linspace(-1, 1, edge)] * 2, indexing="ij")
        tilt = torch.rand(pool, 1, 1, generator=self.gen) * 3.14
        long = xs * tilt.cos() + ys * tilt.sin()
        wide = ys * tilt.cos() - xs * tilt.sin()
        size = 0.3 + 0.4 * torch.rand(2, pool, 1, 1, generator=self.gen)
        shape = torch.exp(-(((long / size[0]) ** 2 + (wide / size[1]) ** 2) ** 2))
        colour = torch.rand(pool, 3, 1, 1, generator=self.gen)
        self.pictures = shape[:, None] * colour

    def deliver(self, trays, seeds):
        for _ in range(trays):
            yield self.pictures[torch.randint(len(self.pictures), (seeds,), generator=self.gen)]


def block(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Grader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.features = nn.Sequential(
            block(3, width, 2),
            block(width, width, 1),
            block(width, 2 * width, 2),
            block(2 * width, 2 * width, 1),
            block(2 * width, 4 * width, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.grade = nn.Linear(4 * width, len(GRADES))

    def forward(self, pictures):
        return self.grade(self.features(pictures))


@contextlib.contextmanager
def shift(name):
    began = time.perf_counter()
    counts = collections.Counter()
    yield counts
    if time.perf_counter() > began:
        shown = ", ".join(f"{grade} {counts[grade]}" for grade in GRADES)
        print(f"{name}: {shown}", flush=True)


def main(shifts=4, trays=110, seeds=64):
    torch.manual_seed(6)
    source = Trays()
    model = Grader().eval()
    for number in range(shifts):
        with shift(f"shift {number + 1}") as counts, torch.inference_mode():
            found = torch.zeros(len(GRADES), dtype=torch.long)
            for pictures in source.deliver(trays, seeds):
                found += torch.bincount(model(pictures).argmax(1), minlength=len(GRADES))
            counts.update(dict(zip(GRADES, found.tolist())))


if __name__ == "__main__":
    main()
