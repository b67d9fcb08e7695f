"""Score a trained ocean emulator: roll it out from many starts and compare with the reference trajectory."""
import os
from typing import Iterator, Protocol

import torch
from torch import nn, Tensor

T = os.environ.get("TINY") == "1"
HORIZON, STARTS, NODES, DIM, BLOCKS = (3, 3, 64, 32, 2) if T else (36, 700, 12288, 768, 6)
CUDA = torch.cuda.is_available()
KIND = torch.bfloat16 if CUDA else torch.float32


class Emulator(Protocol):
    def __call__(self, state: Tensor) -> Tensor: ...


class Mix(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.a = nn.Linear(dim, dim)
        self.b = nn.Linear(dim, dim)
        self.act = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.b(self.act(self.a(self.norm(x))))


def emulator(dim: int, blocks: int) -> nn.Module:
    net = nn.Sequential(*[Mix(dim) for _ in range(blocks)], nn.LayerNorm(dim))
    for m in net.modules():
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=0.4 / dim ** 0.5)
    return net


class Archive:
    """Reference trajectories (a linear drift), made when asked for."""

    def __init__(self, dev: torch.device):
        self.gen = torch.Generator(dev).manual_seed(6)
        self.dev = dev
        self.drift = 0.01 * torch.randn(1, DIM, device=dev, generator=self.gen)

    def starts(self, n: int) -> Iterator[Tensor]:
        for _ in range(n):
            yield torch.randn(NODES, DIM, device=self.dev, dtype=KIND, generator=self.gen)

    def truth(self, start: Tensor, lead: int) -> Tensor:
        return start + (lead * self.drift).to(start.dtype)


class Scorecard:
    def __init__(self, emulate: Emulator, archive: Archive):
        self.emulate = emulate
        self.archive = archive
        self.error = torch.zeros(HORIZON, device=archive.dev)

    def score_one(self, start: Tensor) -> None:
        state = start
        for lead in range(HORIZON):
            state = self.emulate(state)
            gap = nn.functional.mse_loss(state, self.archive.truth(start, lead + 1))
            self.error[lead] += gap.detach()

    @torch.inference_mode()
    def run(self, n: int) -> Tensor:
        for start in self.archive.starts(n):
            self.score_one(start)
        return self.error / n


def main() -> None:
    dev = torch.device("cuda" if CUDA else "cpu")
    torch.manual_seed(0)
    net = emulator(DIM, BLOCKS).to(dev, KIND).eval()
    card = Scorecard(net, Archive(dev))
    error = card.run(STARTS)
    print("mse by lead", [round(e, 4) for e in error[:: max(1, HORIZON // 3)].tolist()])


if __name__ == "__main__":
    main()
