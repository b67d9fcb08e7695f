"""Two-dimensional turbulence with Kolmogorov forcing: pseudo-spectral, Runge-Kutta, pointwise parts compiled."""
import math
import os

import torch

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"
N, STEPS, DT, NU = (32, 3, 1e-3, 1e-3) if TINY else (4096, 900, 1e-4, 1e-5)


@torch.compile
def advect(u, v, wx, wy):
    return u * wx + v * wy


class Vortex:
    def __init__(self):
        k = torch.fft.fftfreq(N, 1 / N, device=DEV)
        kr = torch.fft.rfftfreq(N, 1 / N, device=DEV)
        self.ikx, self.iky = 1j * kr[None, :], 1j * k[:, None]
        k2 = kr[None, :] ** 2 + k[:, None] ** 2
        inverse = torch.where(k2 > 0, 1 / k2.clamp(min=1), 0)
        self.to_u, self.to_v = self.iky * inverse, -self.ikx * inverse
        keep = (kr[None, :].abs() < N / 3) & (k[:, None].abs() < N / 3)
        self.dealias = keep.float().neg()
        self.decay_half = torch.exp(-NU * k2 * DT / 2)
        y = torch.arange(N, device=DEV)[:, None] * (2 * math.pi / N)
        self.forcing = torch.fft.rfft2((4 * torch.cos(4 * y)).expand(N, N))
        g = torch.Generator(device=DEV).manual_seed(5)
        self.w = torch.fft.rfft2(torch.randn(N, N, generator=g, device=DEV)) * (k2 < 400)

    def slope(self, w):
        u, v, wx, wy = (torch.fft.irfft2(w * m, s=(N, N)) for m in (self.to_u, self.to_v, self.ikx, self.iky))
        return torch.addcmul(self.forcing, torch.fft.rfft2(advect(u, v, wx, wy)), self.dealias)

    def step(self):
        middle = torch.add(self.w, self.slope(self.w), alpha=DT / 2) * self.decay_half
        self.w = (self.w * self.decay_half).add_(self.slope(middle), alpha=DT) * self.decay_half


@torch.inference_mode()
def main():
    flow = Vortex()
    for _ in range(STEPS):
        flow.step()
    print("enstrophy %.5g" % torch.fft.irfft2(flow.w, s=(N, N)).square().mean().item())


if __name__ == "__main__":
    main()
