"""D2Q9 lattice Boltzmann flow past a row of cylinders (BGK collision, periodic box)."""
import sys

import numpy as np
import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
SIZE = 2048 if CUDA else 48
SUBSTEPS = 20 if CUDA else 4
FRAMES = 110 if CUDA else 3
TAU = 0.56
U0 = 0.08

# Lattice directions and their quadrature weights
DIRECTIONS = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)


def lattice(device):
    """Weights and x/y velocities of the nine directions, shaped for broadcasting over the grid."""
    w = torch.from_numpy(WEIGHTS).to(device)  # flaw: float64-on-device
    cx = torch.tensor([float(d[0]) for d in DIRECTIONS], device=device)
    cy = torch.tensor([float(d[1]) for d in DIRECTIONS], device=device)
    return w.view(9, 1, 1), cx.view(9, 1, 1), cy.view(9, 1, 1)


def equilibrium(rho, ux, uy, w, cx, cy):
    cu = cx * ux + cy * uy
    return w * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * (ux * ux + uy * uy))


def moments(f, cx, cy):
    rho = f.sum(0)
    return rho, (f * cx).sum(0) / rho, (f * cy).sum(0) / rho


def collide(f, solid, w, cx, cy):
    """BGK relaxation in the fluid, full bounce-back in the solid cells."""
    rho, ux, uy = moments(f, cx, cy)
    relaxed = f - (f - equilibrium(rho, ux, uy, w, cx, cy)) / TAU
    bounced = torch.stack([f[i] for i in (0, 3, 4, 1, 2, 7, 8, 5, 6)])
    return torch.where(solid, bounced, relaxed)


def stream(f):
    moved = [torch.roll(f[i], shifts=(dy, dx), dims=(0, 1)) for i, (dx, dy) in enumerate(DIRECTIONS)]
    return torch.stack(moved)


if CUDA:
    collide, stream = torch.compile(collide), torch.compile(stream)


def cylinders(size, device):
    y, x = torch.meshgrid(torch.arange(size, device=device), torch.arange(size, device=device), indexing="ij")
    solid = torch.zeros(size, size, dtype=torch.bool, device=device)
    for k in range(4):
        cy = size * (2 * k + 1) // 8
        solid |= (x - size // 4) ** 2 + (y - cy) ** 2 < (size // 24) ** 2
    return solid


def start(size, w, cx, cy, device):
    y = torch.linspace(0, 2 * torch.pi, size, device=device)
    ux = (U0 * (1 + 1e-3 * torch.sin(y)))[:, None].expand(size, size)
    rho = torch.ones(size, size, device=device)
    return equilibrium(rho, ux, torch.zeros_like(ux), w, cx, cy).contiguous()


@torch.no_grad()
def run(frames):
    w, cx, cy = lattice(DEVICE)
    solid = cylinders(SIZE, DEVICE)
    f = start(SIZE, w, cx, cy, DEVICE)
    drag = []
    for _ in range(frames):
        for _ in range(SUBSTEPS):
            f = stream(collide(f, solid, w, cx, cy))
        rho, ux, _ = moments(f, cx, cy)
        drag.append((rho * ux).mean())
    return f, torch.stack(drag), (cx, cy)


def main():
    f, drag, (cx, cy) = run(FRAMES)
    rho, ux, uy = moments(f, cx, cy)
    print(f"mass per cell {rho.mean().item():.5f}")
    print(f"momentum {drag[0].item():.5f} -> {drag[-1].item():.5f}")
    speed = (ux * ux + uy * uy).sqrt()
    print(f"fastest {speed.max().item():.3f}  mean {speed.mean().item():.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
