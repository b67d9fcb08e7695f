"""Two-dimensional vorticity on a periodic box, pseudo-spectral, second-order Runge-Kutta."""
import functools
import math
import os
from typing import NamedTuple

import torch
from torch import Tensor


class Box(NamedTuple):
    n: int
    nu: float
    dt: float
    device: torch.device


def wave(box: Box) -> tuple[Tensor, Tensor]:
    kx = torch.fft.fftfreq(box.n, 1.0 / box.n, device=box.device)
    ky = torch.fft.rfftfreq(box.n, 1.0 / box.n, device=box.device)
    return kx[:, None], ky[None, :]


@functools.lru_cache(maxsize=None)
def inverse_laplacian(box: Box) -> Tensor:
    kx, ky = wave(box)
    k2 = kx.square() + ky.square()
    k2[0, 0] = 1.0
    return k2.reciprocal_()


@functools.lru_cache(maxsize=None)
def keep(box: Box) -> Tensor:
    """Smooth high-wavenumber cut-off (36th order)."""
    kx, ky = wave(box)
    r = torch.maximum(kx.abs(), ky.abs()) / (box.n / 2)
    return torch.exp(-36.0 * r.pow(36)) * (torch.hypot(kx, ky) < 0.6 * box.n)


@functools.lru_cache(maxsize=None)
def damping(box: Box) -> Tensor:
    kx, ky = wave(box)
    return torch.exp(-box.nu * box.dt * (kx.square() + ky.square()))


def tendency(w: Tensor, box: Box) -> Tensor:
    kx, ky = wave(box)
    psi = w * inverse_laplacian(box)
    u = torch.fft.irfft2(1j * ky * psi, s=(box.n, box.n))
    v = torch.fft.irfft2(-1j * kx * psi, s=(box.n, box.n))
    wx = torch.fft.irfft2(1j * kx * w, s=(box.n, box.n))
    wy = torch.fft.irfft2(1j * ky * w, s=(box.n, box.n))
    return -torch.fft.rfft2(u * wx + v * wy) * keep(box)


def advance(w: Tensor, box: Box) -> Tensor:
    decay = damping(box)
    k1 = tendency(w, box)
    mid = (w + box.dt * k1) * decay
    k2 = tendency(mid, box)
    return (w + 0.5 * box.dt * k1) * decay + 0.5 * box.dt * k2


def initial(box: Box) -> Tensor:
    x = torch.linspace(0, 2 * math.pi, box.n + 1, device=box.device)[:-1]
    field = torch.sin(3 * x)[:, None] * torch.cos(2 * x)[None] + 0.1 * torch.randn(box.n, box.n, device=box.device)
    return torch.fft.rfft2(field)


def main() -> None:
    torch.manual_seed(21)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    n, steps = (64, 30) if os.environ.get("SMALL") == "1" else (4096, 80)
    box = Box(n, 1e-4, 1e-4, device)
    with torch.no_grad():
        w = initial(box)
        enstrophy = []
        for step in range(steps):
            w = advance(w, box)
            if step % 10 == 0:
                enstrophy.append(w.abs().square().mean())
    print("enstrophy", [f"{e:.3e}" for e in torch.stack(enstrophy).tolist()])


if __name__ == "__main__":
    main()
