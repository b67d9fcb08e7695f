"""D2Q9 lattice Boltzmann: decaying shear layers, reported as kinetic energy."""
import os
import time

import numpy as np
import torch

TINY = os.environ.get("TINY", "") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"

CONF = {
    "grid": (64, 64) if TINY else (3072, 4096),
    "substeps": 4 if TINY else 10,
    "frames": 6 if TINY else 700,
    "tau": 0.56,
    "u0": 0.04,
}

VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))


class Lattice:
    def __init__(self, conf):
        self.conf = conf
        self.omega = 1.0 / conf["tau"]
        c = torch.tensor(VELOCITIES, dtype=torch.float32, device=dev)
        self.cx, self.cy = c[:, 0, None, None], c[:, 1, None, None]
        rest, axis, diagonal = 4 / 9, 1 / 9, 1 / 36
        w = np.concatenate([[rest], np.repeat(axis, 4), np.repeat(diagonal, 4)])
        self.w = torch.as_tensor(w, dtype=torch.float32, device=dev)[:, None, None]

    def equilibrium(self, rho, ux, uy):
        cu = self.cx * ux + self.cy * uy
        square = ux * ux + uy * uy
        return self.w * rho * (1.0 + 3.0 * cu + 4.5 * cu * cu - 1.5 * square)

    def moments(self, f):
        rho = f.sum(0)
        ux = (f[1] - f[3] + f[5] - f[6] - f[7] + f[8]) / rho
        uy = (f[2] - f[4] + f[5] + f[6] - f[7] - f[8]) / rho
        return rho, ux, uy

    def advance(self, f):
        rho, ux, uy = self.moments(f)
        f = f + self.omega * (self.equilibrium(rho, ux, uy) - f)
        return torch.stack([torch.roll(f[i], shifts=v, dims=(0, 1)) for i, v in enumerate(VELOCITIES)])

    def initial(self):
        h, w = self.conf["grid"]
        y = torch.linspace(0, 1, w, device=dev).expand(h, w)
        x = torch.linspace(0, 1, h, device=dev)[:, None].expand(h, w)
        ux = self.conf["u0"] * torch.tanh(80 * (0.25 - (y - 0.5).abs()))
        uy = 0.05 * self.conf["u0"] * torch.sin(2 * torch.pi * (x + 0.25))
        return self.equilibrium(torch.ones_like(ux), ux, uy)


def frames(lattice):
    """Yields the state after each block of substeps."""
    advance = lattice.advance if TINY else torch.compile(lattice.advance)
    f = lattice.initial()
    n = 0
    while n < lattice.conf["frames"]:
        for _ in range(lattice.conf["substeps"]):
            f = advance(f)
        n += 1
        yield n, f


@torch.inference_mode()
def main():
    lattice = Lattice(CONF)
    start = time.perf_counter()
    last = None
    for n, f in frames(lattice):
        last = f
        if n % 100 == 0:
            print("frame", n, flush=True)
    rho, ux, uy = lattice.moments(last)
    energy = (0.5 * rho * (ux * ux + uy * uy)).mean().item()
    print(f"kinetic energy {energy:.6e}")
    print(f"mass {rho.mean().item():.5f}")
    print(f"took {time.perf_counter() - start:.1f} s")


main()
