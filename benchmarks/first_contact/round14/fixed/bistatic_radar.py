"""Range-Doppler maps and detections of a passive radar, cube after cube."""
import os
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F


class Tapers:
    """Windows against side lobes, one per axis of the cube."""

    def __init__(self, samples, chirps, device):
        self.samples, self.chirps, self.device = samples, chirps, device

    @cached_property
    def fast(self):
        return torch.as_tensor(np.blackman(self.samples), dtype=torch.float32, device=self.device)

    @cached_property
    def slow(self):
        return torch.as_tensor(np.hanning(self.chirps)[:, None], dtype=torch.float32, device=self.device)


class Receiver:
    def __init__(self, shape, device):
        self.tapers = Tapers(shape[-1], shape[-2], device)
        self.counts = torch.zeros((), dtype=torch.int64, device=device)
        self.power = torch.zeros((), device=device)

    def spectrum(self, cube):
        ranges = torch.fft.rfft(cube * self.tapers.fast)
        return torch.fft.fft(ranges * self.tapers.slow, dim=-2)

    def detections(self, level):
        floor = F.avg_pool2d(level, (1, 17), stride=1, padding=(0, 8), count_include_pad=False)
        floor = F.avg_pool2d(floor, (9, 1), stride=1, padding=(4, 0), count_include_pad=False)
        return level > 12.0 * floor

    def __call__(self, cube):
        echo = self.spectrum(cube)
        level = torch.view_as_real(echo).square().sum(-1)
        self.counts += self.detections(level).sum()
        self.power += level.mean().float()


def cubes(shape, number, device):
    g = torch.Generator(device=device).manual_seed(31)
    pool = [torch.randn(shape, generator=g, device=device) for _ in range(3)]
    t = torch.arange(shape[-1], device=device)
    for i, cube in enumerate(pool):
        cube += 0.5 * torch.sin(0.3 * (i + 1) * t)
    for i in range(number):
        yield pool[i % 3]


def main():
    tiny = os.environ.get("TINY") == "1"
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape, number = ((2, 16, 64), 5) if tiny else ((128, 256, 2048), 1000)
    receiver = Receiver(shape, device)
    with torch.inference_mode():
        for cube in cubes(shape, number, device):
            receiver(cube)
    print(f"{receiver.counts.item()} detections, mean power {receiver.power.item() / number:.3f}")


if __name__ == "__main__":
    main()
