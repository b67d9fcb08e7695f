"""Explicit heat flow in a plate with a spatially varying diffusivity and a moving burner."""
import math
import os

import numpy as np
import torch

SMALL = os.environ.get("SMALL") == "1"
N = 96 if SMALL else 3072
FRAMES = 30 if SMALL else 70
SUB = 4 if SMALL else 24


def plate(n):
    axis = np.linspace(0.0, 1.0, n)
    xx, yy = np.meshgrid(axis, axis, indexing="ij")
    diffusivity = 0.6 + 0.3 * np.sin(6 * xx) * np.cos(4 * yy)
    return xx, yy, diffusivity


class Plate:
    def __init__(self, n, device):
        fields = [torch.from_numpy(f).float().to(device) for f in plate(n)]
        self.x, self.y, self.k = fields
        self.u = torch.zeros_like(self.k)
        self.flow = torch.zeros_like(self.k)
        self.dt = 0.2

    def burner(self, t):
        cx, cy = 0.5 + 0.3 * math.cos(t), 0.5 + 0.3 * math.sin(t)
        r2 = (self.x - cx).square_().add_((self.y - cy).square_())
        return r2.mul_(-400.0).exp_()

    def substep(self):
        u, f = self.u, self.flow
        mid = u[1:-1, 1:-1]
        lap = f[1:-1, 1:-1]
        torch.add(u[2:, 1:-1], u[:-2, 1:-1], out=lap)
        lap += u[1:-1, 2:]
        lap += u[1:-1, :-2]
        lap.sub_(mid, alpha=4.0)
        mid.addcmul_(lap, self.k[1:-1, 1:-1], value=self.dt)

    def advance(self, frame):
        self.u.add_(self.burner(0.1 * frame), alpha=0.05)
        for _ in range(SUB):
            self.substep()
        return self.u.mean()


@torch.no_grad()
def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sim = Plate(N, device)
    means = []
    for frame in range(FRAMES):
        means.append(sim.advance(frame))
    curve = torch.stack(means).cpu()
    print("mean temperature", curve[0].item(), "->", curve[-1].item())


if __name__ == "__main__":
    main()
