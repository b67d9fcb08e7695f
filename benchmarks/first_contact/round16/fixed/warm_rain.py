"""Warm-rain microphysics (after Kessler) on a block of the atmosphere, compiled."""
import logging
import os
from dataclasses import dataclass, field

import torch

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("rain")
DEV = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Constants:
    latent: float = 2.5e6
    heat: float = 1004.0
    auto_rate: float = 1e-3
    auto_limit: float = 5e-4
    accretion: float = 2.2
    dt: float = 2.0


@dataclass
class Run:
    shape: tuple = (64, 1024, 1024)
    inner: int = 12
    steps: int = 1000
    constants: Constants = field(default_factory=Constants)


@torch.compile
def advance(temp, vapor, cloud, rain, c: Constants):
    celsius = temp - 273.15
    saturated = 611.2 * torch.exp(17.67 * celsius / (celsius + 243.5))
    limit = 0.622 * saturated / (9e4 - saturated)
    slope = 4097.0 * limit / (celsius + 237.3) ** 2
    excess = (vapor - limit) / (1 + c.latent / c.heat * slope)
    condensed = torch.maximum(excess, -cloud)
    dryness = (1 - vapor / limit).clamp(min=0)
    grown = c.dt * c.auto_rate * (cloud - c.auto_limit).clamp(min=0)
    swept = c.dt * c.accretion * cloud * (rain + 1e-9) ** 0.875
    to_rain = torch.minimum(grown + swept, (cloud + condensed).clamp(min=0))
    evaporated = torch.minimum(c.dt * 1e-3 * dryness * (rain + 1e-9).sqrt(), rain)
    temp = temp + c.latent / c.heat * (condensed - evaporated)
    vapor = vapor - condensed + evaporated
    cloud = cloud + condensed - to_rain
    rain = rain + to_rain - evaporated
    return temp, vapor, cloud, rain


def initial(shape):
    g = torch.Generator(DEV).manual_seed(9)
    height = torch.linspace(0, 1, shape[0], device=DEV).view(-1, 1, 1)
    temp = 295 - 25 * height + torch.randn(shape, device=DEV, generator=g)
    vapor = 0.016 * (1 - 0.7 * height) + 1e-3 * torch.randn(shape, device=DEV, generator=g)
    return temp, vapor.clamp_(min=1e-4), torch.full(shape, 3e-4, device=DEV), torch.full(shape, 1e-5, device=DEV)


@torch.no_grad()
def simulate(run):
    state = initial(run.shape)
    for step in range(run.steps):
        for _ in range(run.inner):
            state = advance(*state, run.constants)
    log.info("temp %.3f vapor %.6f cloud %.6f rain %.6f", *(x.mean().item() for x in state))


simulate(Run((4, 16, 16), 2, 4) if os.environ.get("TINY") else Run())
