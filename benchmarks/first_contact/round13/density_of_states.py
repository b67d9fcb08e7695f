"""Kernel polynomial method: density of states of a random Hamiltonian from Chebyshev moments."""
import math
import os
import time

import torch

TINY = os.environ.get("TINY") == "1"
SITES = 128 if TINY else 16384
PROBES = 16 if TINY else 4096
MOMENTS = 32 if TINY else 256
REPEATS = 4 if TINY else 8
BINS = 64

dev = "cuda" if torch.cuda.is_available() else "cpu"


def hamiltonian(n, gen):
    """Gaussian orthogonal ensemble, scaled so that the spectrum lies inside (-1, 1)."""
    h = torch.randn(n, n, device=dev, generator=gen)
    h = h.add_(h.t().clone())
    return h.mul_(0.95 / math.sqrt(8 * n))


def random_phase(gen):
    return torch.randn(SITES, PROBES, device=dev, generator=gen).sign_()


def moments(h, start, out):
    """out[k] = <start| T_k(h) |start>, by the three-term recursion, two buffers."""
    flat = start.view(-1)
    older, newer = start.clone(), h @ start
    out[0] = torch.dot(flat, older.view(-1))
    out[1] = torch.dot(flat, newer.view(-1))
    for k in range(2, MOMENTS):
        older.addmm_(h, newer, beta=-1, alpha=2)
        older, newer = newer, older
        out[k] = torch.dot(flat, newer.view(-1))


def jackson(count):
    k = torch.arange(count, dtype=torch.float64)
    a = math.pi / (count + 1)
    return ((count - k + 1) * torch.cos(a * k) + torch.sin(a * k) / math.tan(a)) / (count + 1)


def density(mu):
    """Evaluated on the host once at the end."""
    mu = mu.double().cpu() * jackson(MOMENTS)
    x = torch.cos(math.pi * (torch.arange(BINS, dtype=torch.float64) + 0.5) / BINS)
    k = torch.arange(MOMENTS, dtype=torch.float64)
    cheb = torch.cos(k[:, None] * torch.arccos(x))
    weight = torch.full((MOMENTS, 1), 2.0, dtype=torch.float64)
    weight[0] = 1
    rho = (weight * mu[:, None] * cheb).sum(0) / (math.pi * torch.sqrt(1 - x * x))
    return x, rho


@torch.no_grad()
def main():
    torch.set_float32_matmul_precision("high")
    gen = torch.Generator(device=dev).manual_seed(1234)
    h = hamiltonian(SITES, gen)
    table = torch.zeros(REPEATS, MOMENTS, device=dev)
    tic = time.perf_counter()
    for r in range(REPEATS):
        moments(h, random_phase(gen), table[r])
    x, rho = density(table.mean(0) / (SITES * PROBES))
    centre = rho[(x.abs() < 0.2)].mean()
    print(f"density at the centre {centre:.5f}, second moment {table[:, 2].mean().item() / (SITES * PROBES):.5f}")
    print(f"{time.perf_counter() - tic:.2f} s")


if __name__ == "__main__":
    main()
