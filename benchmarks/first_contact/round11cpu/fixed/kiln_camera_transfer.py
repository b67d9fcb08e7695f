"""Adapts a pretrained image trunk to grade bricks from a kiln camera; only a new head is trained."""

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Trunk(nn.Module):
    """The published feature extractor (here with random weights)."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=4),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 2, stride=2),
            nn.ReLU(),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images).mean(dim=(2, 3))


class BrickGrader(nn.Module):
    def __init__(self, trunk: Trunk, features: int, grades: int):
        super().__init__()
        self.trunk = trunk
        self.head = nn.Sequential(nn.Linear(features, 128), nn.ReLU(), nn.Linear(128, grades))

    def forward(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            features = self.trunk(images)
        return self.head(features)

    def trainable(self):
        return self.head.parameters()


class KilnCamera:
    """Bricks with cracks; the more cracks, the worse the grade. Frames are brightened at random."""

    def __init__(self, frames: int, side: int, grades: int, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.grade = torch.randint(grades, (frames,), generator=self.gen)
        base = 0.5 + 0.1 * torch.randn(frames, 3, side, side, generator=self.gen)
        column = torch.arange(side).view(1, 1, 1, side)
        for crack in range(grades):
            where = torch.randint(side, (frames, 1, 1, 1), generator=self.gen)
            shown = (self.grade > crack).view(-1, 1, 1, 1)
            base -= 0.4 * (((column - where).abs() < 2) & shown)
        self.frames = base.contiguous(memory_format=torch.channels_last)

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(self.grade), (size,), generator=self.gen)
        light = 0.9 + 0.2 * torch.rand(size, 1, 1, 1, generator=self.gen)
        return self.frames[rows] * light, self.grade[rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--grades", type=int, default=5)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(48)
    camera = KilnCamera(600, side=48, grades=args.grades, seed=49)
    grader = BrickGrader(Trunk(args.width), 4 * args.width, args.grades).to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(grader.trainable(), lr=3e-3, fused=True)
    for step in range(1, args.steps + 1):
        frames, grade = camera.batch(args.batch)
        loss = F.cross_entropy(grader(frames), grade)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 220 == 0:
            print(f"step {step:4d}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
