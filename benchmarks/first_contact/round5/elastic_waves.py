"""Velocity-stress elastic waves on a staggered grid, fused by the compiler."""
import math
import os

import torch

SMALL = os.environ.get("SMALL") == "1"
N = 64 if SMALL else 4096
SHOTS = 30 if SMALL else 80
PER_SHOT = 2 if SMALL else 16


@torch.compile
def push_velocity(vx, vy, sxx, syy, sxy, buoy):
    dxx = torch.roll(sxx, -1, 0) - sxx
    dxy = sxy - torch.roll(sxy, 1, 1)
    dyy = torch.roll(syy, -1, 1) - syy
    dyx = sxy - torch.roll(sxy, 1, 0)
    return vx + buoy * (dxx + dxy), vy + buoy * (dyy + dyx)


@torch.compile
def push_stress(vx, vy, sxx, syy, sxy, lam, mu, absorb):
    exx = vx - torch.roll(vx, 1, 0)
    eyy = vy - torch.roll(vy, 1, 1)
    exy = torch.roll(vx, -1, 1) - vx + torch.roll(vy, -1, 0) - vy
    trace = lam * (exx + eyy)
    return (absorb * (sxx + trace + 2 * mu * exx),
            absorb * (syy + trace + 2 * mu * eyy),
            absorb * (sxy + mu * exy))


def medium(n, device):
    depth = torch.linspace(0, 1, n, device=device)[None, :].expand(n, n)
    lam = (0.1 + 0.05 * depth).contiguous()
    mu = (0.08 + 0.04 * depth).contiguous()
    buoy = torch.full((n, n), 0.4, device=device)
    edge = torch.minimum(torch.arange(n, device=device), torch.arange(n - 1, -1, -1, device=device)).clamp(max=20)
    taper = torch.exp(-((20 - edge) / 60.0) ** 2)
    return lam, mu, buoy, torch.outer(taper, taper)


@torch.no_grad()
def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    lam, mu, buoy, absorb = medium(N, device)
    vx, vy, sxx, syy, sxy = (torch.zeros(N, N, device=device) for _ in range(5))
    seismogram = torch.zeros(SHOTS, device=device)
    for shot in range(SHOTS):
        a = math.pi * 0.2 * (shot - 6)
        sxx[N // 2, N // 4] += (1 - 2 * a * a) * math.exp(-a * a)
        for _ in range(PER_SHOT):
            vx, vy = push_velocity(vx, vy, sxx, syy, sxy, buoy)
            sxx, syy, sxy = push_stress(vx, vy, sxx, syy, sxy, lam, mu, absorb)
        seismogram[shot] = vy[N // 2, N // 3]
    print("peak", seismogram.abs().amax().item())


if __name__ == "__main__":
    main()
