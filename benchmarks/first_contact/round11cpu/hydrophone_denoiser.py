"""Removes ship noise from hydrophone clips with a mask over chirplet energies.

Registry of front ends, because the paper compares several of them.
"""

import math
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

FRONT_ENDS: dict[str, Callable[..., nn.Module]] = {}


def front_end(name: str):
    def add(cls):
        FRONT_ENDS[name] = cls
        return cls

    return add


@front_end("chirplets")
class ChirpletEnergies(nn.Module):
    """Log energies of a clip's frames along short sweeps: every pitch is combined with every slope."""

    def __init__(self, length: int, hop: int, pitches: int, slopes: int, rate: int):
        super().__init__()
        self.length, self.hop = length, hop
        self.pitches, self.slopes, self.rate = pitches, slopes, rate

    @property
    def size(self) -> int:
        return self.pitches * self.slopes

    def dictionary(self) -> torch.Tensor:
        t = torch.arange(self.length) / self.rate
        pitch = torch.logspace(math.log10(150), math.log10(1500), self.pitches)
        slope = torch.linspace(-4000, 4000, self.slopes)
        phase = 2 * math.pi * (pitch[:, None, None] * t + 0.5 * slope[None, :, None] * t * t)
        phase = phase.reshape(self.size, self.length)
        return torch.cat([torch.cos(phase), torch.sin(phase)]) * torch.hann_window(self.length)

    def forward(self, clip: torch.Tensor) -> torch.Tensor:
        frames = clip.unfold(-1, self.length, self.hop)
        atoms = self.dictionary()  # flaw: constant-rebuilt
        re, im = (frames @ atoms.T).chunk(2, dim=-1)
        return torch.log1p(re.square() + im.square())


class MaskNet(nn.Module):
    def __init__(self, encoder: nn.Module, width: int = 96):
        super().__init__()
        self.encoder = encoder
        self.rnn = nn.GRU(encoder.size, width, batch_first=True)
        self.mask = nn.Linear(width, encoder.size)

    def forward(self, clip: torch.Tensor):
        energies = self.encoder(clip)
        hidden, _ = self.rnn(energies)
        return energies * torch.sigmoid(self.mask(hidden))


def whale_and_ship(batch: int, samples: int, rate: int, gen: torch.Generator):
    t = torch.arange(samples) / rate
    start = torch.rand(batch, 1, generator=gen) * 600 + 200
    slope = torch.rand(batch, 1, generator=gen) * 800
    call = torch.sin(2 * math.pi * (start * t + 0.5 * slope * t * t))
    hum = torch.sin(2 * math.pi * 60 * t) + 0.5 * torch.randn(batch, samples, generator=gen)
    return call, call + hum


def main(name: str = "chirplets", steps: int = 1600):
    torch.set_num_threads(1)
    torch.manual_seed(21)
    rate, samples = 4000, 4096
    encoder = FRONT_ENDS[name](length=1024, hop=256, pitches=40, slopes=7, rate=rate)
    net = MaskNet(encoder)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, fused=True)
    gen = torch.Generator().manual_seed(8)
    pool = [whale_and_ship(6, samples, rate, gen) for _ in range(20)]
    with torch.no_grad():
        pool = [(encoder(call), noisy) for call, noisy in pool]
    for step in range(steps):
        clean, noisy = pool[step % len(pool)]
        loss = F.l1_loss(net(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 400 == 399:
            print(f"step {step + 1}: energy error {loss.item():.4f}")


if __name__ == "__main__":
    main()
