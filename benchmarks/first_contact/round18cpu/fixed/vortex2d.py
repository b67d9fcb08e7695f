# Decaying two-dimensional turbulence, pseudo-spectral in space, Heun's method in time.
import math
import os
import sys
import time

import torch

N = 64 if os.environ.get("TINY") else 640
TICKS = 4 if os.environ.get("TINY") else 100
DT, NU = 2e-3, 2e-4


def wavenumbers(n):
    kx = torch.fft.fftfreq(n, 1.0 / n).view(n, 1)
    ky = torch.fft.rfftfreq(n, 1.0 / n).view(1, n // 2 + 1)
    return kx, ky


class Spectral:
    def __init__(self, n, nu):
        self.n, self.nu = n, nu
        self.fixed = self.symbols()

    def symbols(self):
        kx, ky = wavenumbers(self.n)
        k2 = kx * kx + ky * ky
        inv = torch.where(k2 > 0, 1.0 / k2.clamp_min(1.0), torch.zeros_like(k2))
        radius = torch.sqrt(k2) / (self.n / 2)
        keep = torch.exp(-36.0 * radius.pow(19.0))
        damp = torch.exp(-self.nu * k2 * DT - 1e-3 * DT * k2.pow(1.25))
        return 1j * kx, 1j * ky, inv, keep, damp

    def advect(self, w):
        ikx, iky, inv, keep, _ = self.fixed
        psi = w * inv
        fields = torch.stack((iky * psi, -ikx * psi, ikx * w, iky * w))
        u, v, wx, wy = torch.fft.irfft2(fields, s=(self.n, self.n))
        return -keep * torch.fft.rfft2(torch.addcmul(u * wx, v, wy))

    def heun(self, w):
        damp = self.fixed[-1]
        first = self.advect(w)
        guess = damp * (w + DT * first)
        second = self.advect(guess)
        return damp * (w + 0.5 * DT * first) + 0.5 * DT * second


@torch.inference_mode()
def simulate():
    torch.manual_seed(4)
    axis = torch.arange(N) * (2 * math.pi / N)
    w0 = torch.sin(4 * axis)[:, None] * torch.cos(3 * axis)[None] + 0.3 * torch.randn(N, N)
    w = torch.fft.rfft2(w0)
    solver = Spectral(N, NU)
    began = time.perf_counter()
    for tick in range(TICKS):
        w = solver.heun(w)
    print(f"{(time.perf_counter() - began) / TICKS * 1e3:.1f} ms", file=sys.stderr)
    vort = torch.fft.irfft2(w, s=(N, N))
    print(f"enstrophy {vort.square().mean().item():.5f}  peak {vort.abs().max().item():.3f}")


simulate()
