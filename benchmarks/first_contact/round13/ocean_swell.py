"""Swell over an uneven sea floor: leapfrog wave equation on a periodic chart, energy per frame."""
import os

import torch

TINY = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
SIDE, FRAMES, SUBSTEPS = (64, 4, 5) if TINY else (8192, 1300, 24)


def leap(now, before, courant2):
    around = now.roll(1, 0) + now.roll(-1, 0) + now.roll(1, 1) + now.roll(-1, 1)
    return 2 * now - before + courant2 * (around - 4 * now)


def energy(now, before):
    return ((now - before).square() + 0.01 * now.square()).mean()


if not TINY:
    leap, energy = torch.compile(leap), torch.compile(energy)


def sea_floor(side):
    gen = torch.Generator(device).manual_seed(30)
    coarse = torch.rand(1, 1, side // 16, side // 16, device=device, generator=gen)
    depth = torch.nn.functional.interpolate(coarse, size=(side, side), mode="bilinear", align_corners=False)[0, 0]
    return 0.1 + 0.15 * depth


class Gauges:
    """Tide gauges: read the surface at fixed places, once per frame, without leaving the device."""

    def __init__(self, count, frames):
        gen = torch.Generator(device).manual_seed(31)
        self.at = torch.randint(SIDE * SIDE, (count,), device=device, generator=gen)
        self.tape = torch.zeros(frames, count, device=device)

    def read(self, frame, surface):
        torch.index_select(surface.view(-1), 0, self.at, out=self.tape[frame])

    def highest(self):
        return self.tape.amax().item()


def storm(side):
    x = torch.arange(side, device=device, dtype=torch.float32) - side / 2
    bump = torch.exp(-(x / (side / 20)).square())
    return torch.outer(bump, bump)


@torch.inference_mode()
def main():
    courant2 = sea_floor(SIDE)
    before = storm(SIDE)
    now = before.clone()
    log = torch.zeros(FRAMES, device=device)
    gauges = Gauges(256, FRAMES)
    for frame in range(FRAMES):
        for _ in range(SUBSTEPS):
            now, before = leap(now, before, courant2), now
        log[frame] = energy(now, before)
        gauges.read(frame, now)
    first, last = log[0].item(), log[-1].item()
    print(f"energy {first:.3e} -> {last:.3e}, crest {now.max().item():.4f}, gauges {gauges.highest():.4f}")


if __name__ == "__main__":
    main()
