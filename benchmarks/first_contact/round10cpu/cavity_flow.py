"""Vorticity and stream function of a lid-driven cavity, explicit in time."""

import torch
import torch.nn.functional as F


class CavityFlow:
    def __init__(self, n=384, reynolds=100.0, dt=1e-5):
        self.n, self.dt, self.viscosity = n, dt, 1.0 / reynolds
        self.h = 1.0 / (n - 1)
        self.vorticity = torch.zeros(n, n)
        self.stream = torch.zeros(n, n)
        h2 = self.h * self.h
        self.laplace = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])[None, None] / h2
        k = torch.arange(1, n - 1)
        self.sines = (torch.pi * k[:, None] * k / (n - 1)).sin() * (2 / (n - 1)) ** 0.5
        values = 2 * (torch.cos(torch.pi * k / (n - 1)) - 1) / h2
        self.inverse_values = 1.0 / (values[:, None] + values[None, :])

    def solve_stream(self):
        """Poisson equation by sine transforms, which are products for this size."""
        s = self.sines
        spectrum = (s @ self.vorticity[1:-1, 1:-1] @ s) * self.inverse_values
        self.stream[1:-1, 1:-1] = -(s @ spectrum @ s)

    def walls(self):
        w, p, h2 = self.vorticity, self.stream, self.h * self.h
        w[0] = -2 * p[1] / h2
        w[-1] = -2 * p[-2] / h2 - 2 / self.h
        w[:, 0] = -2 * p[:, 1] / h2
        w[:, -1] = -2 * p[:, -2] / h2

    def step(self):
        self.solve_stream()
        self.walls()
        w, p = self.vorticity, self.stream
        u = p[2:, 1:-1] - p[:-2, 1:-1]
        v = p[1:-1, :-2] - p[1:-1, 2:]
        dx = w[1:-1, 2:] - w[1:-1, :-2]
        dy = w[2:, 1:-1] - w[:-2, 1:-1]
        change = F.conv2d(w[None, None], self.laplace)[0, 0].mul_(self.viscosity)
        change.sub_(u.mul_(dx).add_(v.mul_(dy)), alpha=0.25 / (self.h * self.h))
        w[1:-1, 1:-1].add_(change, alpha=self.dt)


@torch.inference_mode()
def main():
    flow = CavityFlow()
    for number in range(1, 801):
        flow.step()
        if number % 200 == 0:
            print(f"step {number}: strongest stream {flow.stream.abs().max().item():.6f}")


if __name__ == "__main__":
    main()
