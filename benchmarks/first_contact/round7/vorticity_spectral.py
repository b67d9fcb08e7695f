"""Forced two-dimensional turbulence, pseudo-spectral, third-order Runge-Kutta."""

import cmath
import math

import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
N = 4096 if CUDA else 64
STEPS = 400 if CUDA else 6
NU, DRAG, DT = 1e-24, 0.02, 2e-4
FORCE_WAVENUMBER, FORCE_WIDTH = 12.0, 1.5


def wavenumbers(n, device):
    ky = torch.fft.fftfreq(n, 1 / n, device=device)[:, None].expand(n, n // 2 + 1)
    kx = torch.fft.rfftfreq(n, 1 / n, device=device)[None, :].expand(n, n // 2 + 1)
    return kx, ky


def operators(n, device):
    kx, ky = wavenumbers(n, device)
    k2 = kx * kx + ky * ky
    inverse_laplacian = -1.0 / torch.where(k2 == 0, torch.inf, k2)
    keep = (kx.abs() < n / 3) & (ky.abs() < n / 3)
    linear = -NU * k2**4 - DRAG
    ring = torch.exp(-(((k2.sqrt() - FORCE_WAVENUMBER) / FORCE_WIDTH) ** 2))
    return 1j * kx, 1j * ky, inverse_laplacian, keep, linear, ring


def tendency(w_hat, phase):
    n = w_hat.shape[0]
    ikx, iky, inverse_laplacian, keep, linear, ring = operators(n, w_hat.device)  # flaw: constant-rebuilt
    psi_hat = w_hat * inverse_laplacian
    u = torch.fft.irfft2(iky * psi_hat)
    v = torch.fft.irfft2(ikx * psi_hat)
    w = torch.fft.irfft2(w_hat)
    flux_hat = ikx * torch.fft.rfft2(u * w) - iky * torch.fft.rfft2(v * w)
    return linear * w_hat - flux_hat * keep + ring * phase


def runge_kutta(w_hat, phase):
    k1 = tendency(w_hat, phase)
    first = torch.add(w_hat, k1, alpha=DT)
    k2 = tendency(first, phase)
    second = torch.lerp(w_hat, torch.add(first, k2, alpha=DT), 0.25)
    k3 = tendency(second, phase)
    return torch.lerp(w_hat, torch.add(second, k3, alpha=DT), 2 / 3)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    w_hat = torch.fft.rfft2(torch.randn(N, N, device=DEVICE))
    amplitude = 0.01 * N * N
    for step in range(STEPS):
        phase = cmath.rect(amplitude, 2 * math.pi * (step * 0.618 % 1.0))
        w_hat = runge_kutta(w_hat, phase)
        if step % 100 == 99 or not CUDA:
            enstrophy = torch.fft.irfft2(w_hat).square().mean()
            print(f"t={DT * (step + 1):.4f} enstrophy {enstrophy.item():.6f}")


if __name__ == "__main__":
    main()
