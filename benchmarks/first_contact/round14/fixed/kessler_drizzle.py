"""Warm-rain microphysics after Kessler on a large grid of columns; no gradients, many short time steps."""
import os

import torch

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"


class Atmosphere:
    """Vapour, cloud and rain (kg/kg) and temperature (K) on levels x columns."""

    CP, LV, RD, P0 = 1004.0, 2.5e6, 287.0, 1.0e5

    def __init__(self, levels, columns, dt):
        g = torch.Generator(device=DEV).manual_seed(17)
        height = torch.linspace(0, 12e3, levels, device=DEV)[:, None]
        self.dt = dt
        self.pressure = self.P0 * torch.exp(-height / 8e3)
        noise = torch.randn(levels, columns, generator=g, device=DEV)
        self.temperature = 300.0 - 6.5e-3 * height + 0.5 * noise
        self.vapour = 0.018 * torch.exp(-height / 2.5e3) * (1 + 0.1 * torch.rand(levels, columns, generator=g, device=DEV))
        self.cloud = torch.zeros_like(self.vapour)
        self.rain = torch.zeros_like(self.vapour)

    @torch.compile
    def microphysics(self, t, qv, qc, qr, p):
        # Tetens
        es = 610.78 * torch.exp(17.27 * (t - 273.16) / (t - 35.86))
        qs = 0.622 * es / (p - 0.378 * es)
        # autoconversion and accretion
        auto = 1e-3 * torch.relu(qc - 5e-4)
        accretion = 2.2 * qc * qr.clamp(min=0.0).pow(0.875)
        grown = torch.minimum((auto + accretion) * self.dt, qc)
        qc = qc - grown
        qr = qr + grown
        # evaporation of rain
        rho = p / (self.RD * t)
        ventilation = 1.6 + 124.9 * (rho * qr).clamp(min=0.0).pow(0.2046)
        deficit = torch.relu(1.0 - qv / qs)
        rate = deficit * ventilation * (rho * qr).clamp(min=0.0).pow(0.525) / (5.4e5 + 2.55e6 / (p * qs)) / rho
        dry = torch.minimum(rate * self.dt, qr)
        qr = qr - dry
        qv = qv + dry
        t = t - self.LV / self.CP * dry
        # saturation adjustment
        slope = qs * 17.27 * 237.3 / (t - 35.86).square()
        excess = (qv - qs) / (1.0 + self.LV / self.CP * slope)
        excess = torch.maximum(excess, -qc)
        return t + self.LV / self.CP * excess, qv - excess, qc + excess, qr

    def fall(self):
        self.rain[:-1] += 0.02 * (self.rain[1:] - self.rain[:-1])

    def advance(self):
        self.temperature, self.vapour, self.cloud, self.rain = self.microphysics(
            self.temperature, self.vapour, self.cloud, self.rain, self.pressure)
        self.fall()
        self.temperature -= 2e-3 * self.dt  # radiative cooling


@torch.inference_mode()
def forecast():
    air = Atmosphere(*((20, 50) if TINY else (128, 262144)), dt=2.0)
    for _ in range(5 if TINY else 500):
        air.advance()
    for name in ("temperature", "vapour", "cloud", "rain"):
        print(f"{name:12s}{getattr(air, name).double().mean().item():.6g}")


if __name__ == "__main__":
    forecast()
