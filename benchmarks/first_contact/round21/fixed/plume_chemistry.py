"""Photochemistry in the plume of a wildfire: six species on a periodic grid, Arrhenius rates, slow mixing.

    NO2 -> NO + O          O + O2 -> O3          NO + O3 -> NO2
    VOC + OH -> RO2        RO2 + NO -> NO2 + OH  (rates per cell from the temperature)

Nothing is trained here. The simulation is the reference for an emulator that lives in another repository.
"""
import logging
import sys
import time
from typing import NamedTuple

import torch
from torch import Tensor

log = logging.getLogger("plume")

GRID = 4096
SUBSTEPS = 32
STEPS = 600
DT = 2e-3
MIXING = 0.04


class Air(NamedTuple):
    no: Tensor
    no2: Tensor
    o3: Tensor
    voc: Tensor
    oh: Tensor
    ro2: Tensor


def describe(stage, *fields):
    if torch.compiler.is_compiling():
        return
    log.debug("%s: %s", stage, [tuple(f.shape) for f in fields])


@torch.compile
def react(air, temperature, sun):
    no, no2, o3, voc, oh, ro2 = air
    inverse = 1.0 / temperature
    photolysis = sun * no2 * torch.exp(-120.0 * inverse)
    titration = 3.0 * no * o3 * torch.exp(-1370.0 * (inverse - 1.0 / 298.0))
    oxidation = 6.0 * voc * oh * torch.exp(380.0 * (inverse - 1.0 / 298.0))
    cycling = 8.0 * ro2 * no * torch.exp(360.0 * (inverse - 1.0 / 298.0))
    describe("rates", photolysis, titration, oxidation, cycling)
    loss = 0.2 * no2 * oh
    return Air(
        no + DT * (photolysis - titration - cycling),
        no2 + DT * (titration + cycling - photolysis - loss),
        o3 + DT * (photolysis - titration),
        voc - DT * oxidation,
        oh + DT * (cycling - oxidation - loss + 0.01 * sun * o3),
        ro2 + DT * (oxidation - cycling),
    )


@torch.compile
def mix(air):
    def mixed(f):
        around = f.roll(1, 0) + f.roll(-1, 0) + f.roll(1, 1) + f.roll(-1, 1)
        return ((1 - 4 * MIXING) * f + MIXING * around).clamp_min(0.0)

    return Air(*map(mixed, air))


def ignite(device, seed=9):
    g = torch.Generator(device=device).manual_seed(seed)

    def patchy(low, high):
        coarse = torch.rand(1, 1, GRID // 32, GRID // 32, generator=g, device=device)
        fine = torch.nn.functional.interpolate(coarse, size=(GRID, GRID), mode="bilinear", align_corners=False)
        return (low + (high - low) * fine)[0, 0].contiguous()

    air = Air(patchy(0.1, 0.6), patchy(0.2, 0.9), patchy(0.3, 0.5), patchy(0.0, 2.0), patchy(0.0, 0.1), patchy(0.0, 0.1))
    return air, patchy(285.0, 345.0), patchy(0.2, 1.0)


@torch.inference_mode()
def run(device, steps=STEPS):
    air, temperature, sun = ignite(device)
    describe("start", temperature, sun, *air)
    begin = time.time()
    for step in range(1, steps + 1):
        for _ in range(SUBSTEPS):
            air = mix(react(air, temperature, sun))
        if step % 100 == 0:
            means = torch.stack([f.mean() for f in air]).tolist()
            shown = "  ".join(f"{name} {mean:.4f}" for name, mean in zip(Air._fields, means))
            log.info("%5d  %s  %.1f s", step, shown, time.time() - begin)
    return air


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    run(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
