"""Warm-rain microphysics (Kessler-like) on a storm-resolving grid; the update of a cell is compiled."""
import logging
import os

import torch

log = logging.getLogger("nimbus")
logging.basicConfig(level=logging.WARNING)
TINY = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def saturation(theta):
    celsius = theta - 273.15
    return 3.8e-3 * torch.exp(17.27 * celsius / (celsius + 237.3))


def rates(theta, vapour, cloud, rain):
    excess = vapour - saturation(theta)
    condense = torch.where(excess > 0, excess, torch.maximum(excess, -cloud)) * 0.5
    convert = 1e-3 * torch.relu(cloud - 5e-4)
    collect = 2.2 * cloud * rain.clamp(min=0).pow(0.875)
    dryness = torch.relu(-excess)
    evaporate = torch.minimum(dryness * (1.6 + 30.0 * rain.sqrt()) * 0.02, rain)
    fall = 0.01 * rain.pow(1.125)
    return condense, convert, collect, evaporate, fall


@torch.compile(backend="inductor" if device.type == "cuda" else "eager")
def advance(theta, vapour, cloud, rain, dt):
    condense, convert, collect, evaporate, fall = rates(theta, vapour, cloud, rain)
    heat = 2.5e3 * (condense - evaporate) / 1.004
    moved = convert + collect
    return (
        theta + dt * 0.4 * heat,
        torch.relu(vapour - dt * (condense - evaporate)),
        torch.relu(cloud + dt * (condense - moved)),
        torch.relu(rain + dt * (moved - evaporate - fall)),
    )


class Storm:
    def __init__(self, side, levels):
        g = torch.Generator(device).manual_seed(20)
        shape = levels, side, side
        self.theta = 285 + 6 * torch.rand(shape, generator=g, device=device)
        self.vapour = 0.012 * torch.rand(shape, generator=g, device=device)
        self.cloud = 1e-3 * torch.rand(shape, generator=g, device=device)
        self.rain = 5e-4 * torch.rand(shape, generator=g, device=device)

    def integrate(self, substeps, dt):
        state = self.theta, self.vapour, self.cloud, self.rain
        for _ in range(substeps):
            state = advance(*state, dt)
        self.theta, self.vapour, self.cloud, self.rain = state


@torch.inference_mode()
def main():
    side, levels, minutes = (8, 4, 5) if TINY else (1024, 48, 520)
    storm = Storm(side, levels)
    for _ in range(minutes):
        storm.integrate(10, 0.5)
    print(f"rain water {storm.rain.double().mean().item():.6e}, warmth {storm.theta.double().mean().item():.4f}")


if __name__ == "__main__":
    main()
