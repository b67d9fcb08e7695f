"""Snow water over a mountain basin, hour by hour (a distributed energy balance).

State: water equivalent, temperature and age of the snow in each cell. All of it is done
on the whole basin at once.
"""
import math

import torch

ROWS, COLUMNS = 512, 640
HOURS = 1000
STEFAN, FUSION, ICE_HEAT = 5.67e-8, 3.34e5, 2100.0


class Basin:
    def __init__(self, seed):
        gen = torch.Generator().manual_seed(seed)
        rough = torch.randn(1, 1, ROWS // 32, COLUMNS // 32, generator=gen)
        height = torch.nn.functional.interpolate(rough, size=(ROWS, COLUMNS), mode="bicubic")[0, 0]
        self.height = 1800 + 400 * height
        east, south = torch.gradient(self.height, spacing=90.0)
        self.tilt = torch.rsqrt(1 + east.square() + south.square())
        self.cooler = -0.0065 * (self.height - 1800)
        self.wet = 1 + 0.0004 * (self.height - 1800)


class Weather:
    """One number each for an hour, from a generator of its own."""

    def __init__(self, seed):
        gen = torch.Generator().manual_seed(seed)
        hours = torch.arange(HOURS)
        daily = torch.sin(2 * math.pi * (hours - 8) / 24)
        noise = torch.randn(HOURS, generator=gen).cumsum(0) * 0.15
        self.air = (1.0 + 5 * daily + noise).tolist()
        self.sun = (700 * daily.clamp_min(0)).tolist()
        self.wind = (2 + torch.rand(HOURS, generator=gen) * 4).tolist()
        storm = torch.rand(HOURS, generator=gen) < 0.1
        self.rain = (storm * torch.rand(HOURS, generator=gen) * 3).tolist()

    def __iter__(self):
        return zip(self.air, self.sun, self.wind, self.rain)


def hourly(water, cold, age, cooler, tilt, wet, air, sun, wind, rain):  # flaw: unfused-elementwise
    warm = air + cooler
    snowing = ((2.0 - warm) / 3.0).clamp(0, 1)
    fallen = rain * wet * snowing
    age = (age + 1) * (1 - (fallen / 2).clamp(0, 1))
    albedo = 0.5 + 0.35 * torch.exp(-age / 120)
    short = sun * tilt * (1 - albedo)
    kelvin = warm + 273.15
    surface = cold + 273.15
    long = STEFAN * (0.8 * kelvin.square().square() - 0.98 * surface.square().square())
    turbulent = 1.8 * wind * (warm - cold)
    energy = (short + long + turbulent) * 3600
    mass = water + fallen
    heated = cold + energy / (ICE_HEAT * (mass + 20))
    surplus = heated.clamp_min(0) * ICE_HEAT * (mass + 20)
    melted = torch.minimum(surplus / FUSION, mass)
    return mass - melted, heated.clamp(-30, 0), age, melted


class Model:
    def __init__(self, basin):
        self.basin = basin
        self.water = 100 * basin.wet.clamp_min(0.1)
        self.cold = torch.full_like(basin.height, -4.0)
        self.age = torch.zeros_like(basin.height)

    def advance(self, air, sun, wind, rain):
        b = self.basin
        # numbers differ from hour to hour, so they go in as tensors without dimensions
        numbers = [torch.tensor(n) for n in (air, sun, wind, rain)]
        self.water, self.cold, self.age, melted = hourly(
            self.water, self.cold, self.age, b.cooler, b.tilt, b.wet, *numbers
        )
        return melted


def simulate():
    model = Model(Basin(seed=4))
    released = torch.zeros(())
    for hour, forcing in enumerate(Weather(seed=4), start=1):
        released += model.advance(*forcing).mean()
        if hour % 100 == 0:
            left = model.water.mean().item()
            print(f"hour {hour:4d}: snow {left:8.3f} mm, melted so far {released.item():8.3f} mm", flush=True)


if __name__ == "__main__":
    with torch.inference_mode():
        simulate()
