"""Symplectic stepping of independent Duffing resonators (a wafer of MEMS beams)."""
import logging
from dataclasses import dataclass

import torch
from torch import Tensor

log = logging.getLogger("resonators")


@dataclass(frozen=True)
class Beam:
    stiff: float = 1.0
    cubic: float = 0.35
    loss: float = 0.004
    dt: float = 0.05


def energy_note(stage: str, x: Tensor) -> None:
    if not torch.compiler.is_compiling():
        log.debug("%s: %d resonators of %s", stage, x.numel(), x.dtype)


class Leapfrog:
    def __init__(self, beam: Beam, rounds: int):
        self.beam, self.rounds = beam, rounds

    def force(self, x: Tensor, drive: Tensor) -> Tensor:
        return drive - x * (self.beam.stiff + self.beam.cubic * x * x)

    def substep(self, x: Tensor, v: Tensor, drive: Tensor):
        half = 0.5 * self.beam.dt
        v = v * (1 - self.beam.loss) + half * self.force(x, drive)
        x = x + self.beam.dt * v
        v = v + half * self.force(x, drive)
        energy_note("substep", x)
        return x, v

    def advance(self, x: Tensor, v: Tensor, drives: Tensor):
        for k in range(self.rounds):
            x, v = self.substep(x, v, drives[k])
        return x, v
