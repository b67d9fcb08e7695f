"""Classifies sounds at a doorbell; clips are gathered from several devices and scored in one batch."""

import collections
import itertools
import logging
from dataclasses import dataclass

import torch
from torch import nn

logger = logging.getLogger(__name__)
SOUNDS = ["silence", "knock", "bell", "dog", "speech"]


@dataclass(order=True)
class Clip:
    arrived: int
    device: int
    samples: torch.Tensor


class SoundNet(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, width, 64, stride=16),
            nn.ReLU(inplace=True),
            nn.Conv1d(width, 2 * width, 8, stride=4),
            nn.ReLU(inplace=True),
            nn.Conv1d(2 * width, 4 * width, 4, stride=2),
            nn.ReLU(inplace=True),
        )
        self.sound = nn.Linear(4 * width, len(SOUNDS))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return self.sound(self.layers(clips.unsqueeze(1)).mean(2))


class Devices:
    """An endless supply of clips; every device plays its recordings in turn."""

    def __init__(self, devices: int, recordings: int, samples: int, seed: int):
        gen = torch.Generator().manual_seed(seed)
        t = torch.arange(samples) / 8000
        pitch = 100 + 1500 * torch.rand(devices, recordings, 1, generator=gen)
        decay = 2 + 10 * torch.rand(devices, recordings, 1, generator=gen)
        noise = 0.05 * torch.randn(devices, recordings, samples, generator=gen)
        sound = torch.exp(-decay * t) * torch.sin(2 * torch.pi * pitch * t) + noise
        self.sound = [list(of_device) for of_device in sound]
        self.clock = itertools.count()

    def burst(self):
        now = next(self.clock)
        for device, recordings in enumerate(self.sound):
            yield Clip(now, device, recordings[now % len(recordings)])


class Server:
    def __init__(self, net: nn.Module, batch: int):
        self.net = net.eval()
        self.batch = batch
        self.heard: collections.Counter = collections.Counter()

    @torch.inference_mode()
    def score(self, clips: list[Clip]) -> list[str]:
        scores = self.net(torch.stack([clip.samples for clip in clips]))
        return [SOUNDS[i] for i in scores.argmax(1).tolist()]

    def run(self, devices: Devices, rounds: int) -> None:
        for round_ in range(rounds):
            clips = list(devices.burst())
            for sound in self.score(clips):
                self.heard[sound] += 1
            if round_ % 325 == 324:
                logger.info("round %d: %s", round_ + 1, dict(sorted(self.heard.items())))


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    torch.manual_seed(140)
    devices = Devices(devices=64, recordings=10, samples=8000, seed=141)
    Server(SoundNet(width=32), batch=64).run(devices, rounds=1300)


if __name__ == "__main__":
    main()
