"""Live segmentation of plankton under a microscope.

The camera's frames come in short bursts. The dish itself (scratches, vignetting) is taken
out with the average of all that was seen so far.
"""
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F

SIZE = 384
BURST = 4
BURSTS = 500


class Camera:
    def __init__(self, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        scratches = torch.randn(1, 1, SIZE // 8, SIZE // 8, generator=self.gen)
        self.dish = F.interpolate(scratches, scale_factor=8, mode="bilinear")[0] * 0.3
        blobs = torch.randn(16, 1, SIZE // 16, SIZE // 16, generator=self.gen)
        self.swarm = F.interpolate(blobs, size=(SIZE, SIZE), mode="bilinear").relu()
        self.grain = 0.1 * torch.randn(8, BURST, 1, SIZE, SIZE, generator=self.gen)

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            which = torch.randint(len(self.swarm), (BURST,), generator=self.gen)
            grain = int(torch.randint(len(self.grain), (), generator=self.gen))
            yield self.swarm[which] + self.dish + self.grain[grain]


class Background:
    """The mean picture of the dish."""

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []  # flaw: memory-growth

    def update(self, burst: torch.Tensor) -> torch.Tensor:
        self.seen.append(burst.mean(0))  # flaw: memory-growth
        return sum(self.seen) / len(self.seen)  # flaw: memory-growth


class Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 16, 4, stride=4)
        self.body = nn.Sequential(
            nn.ReLU(inplace=True),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(inplace=True),
        )
        self.up = nn.Conv2d(32, 2, 1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.up(self.body(self.down(frames)))


class Station:
    """Frames in, shares of covered area out."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = Segmenter().eval()
        self.background = Background()

    @torch.inference_mode()
    def handle(self, burst: torch.Tensor) -> torch.Tensor:
        clean = burst - self.background.update(burst)
        return self.model(clean).softmax(1)[:, 1].mean((1, 2))


def serve() -> None:
    station = Station(seed=12)
    covered = torch.zeros(BURST)
    for number, burst in enumerate(Camera(seed=12), start=1):
        covered += station.handle(burst)
        if number % 100 == 0:
            print(f"{number} bursts, covered {covered.mean().item() / number:.6f}", flush=True)
        if number == BURSTS:
            break


if __name__ == "__main__":
    serve()
