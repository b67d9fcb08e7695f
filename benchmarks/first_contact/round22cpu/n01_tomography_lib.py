"""Geometry, phantom and solver of the slice reconstruction."""
import numpy as np
import torch


class Geometry:
    """Parallel beams through a square of size x size pixels."""

    def __init__(self, size, angles):
        self.size = size
        self.angles = np.linspace(0.0, np.pi, angles, endpoint=False)

    def weights(self):
        """One row for each ray, one column for each pixel."""
        size = self.size
        centre = np.arange(size) - (size - 1) / 2
        ys, xs = np.meshgrid(centre, centre, indexing="ij")
        pixels = np.arange(size * size)
        table = np.zeros((len(self.angles), size, size * size))
        for row, angle in enumerate(self.angles):
            place = (xs * np.cos(angle) + ys * np.sin(angle)).ravel() + (size - 1) / 2
            low = np.floor(place).astype(int)
            share = place - low
            for ray, part in ((low, 1 - share), (low + 1, share)):
                inside = (ray >= 0) & (ray < size)
                table[row, ray[inside], pixels[inside]] += part[inside]
        return table.reshape(-1, size * size)


def phantom(rng, size, slices):
    grid = np.linspace(-1, 1, size)
    ys, xs = np.meshgrid(grid, grid, indexing="ij")
    stack = np.zeros((size * size, slices))
    for at in range(slices):
        image = np.zeros((size, size))
        for _ in range(6):
            x, y = rng.uniform(-0.5, 0.5, 2)
            a, b = rng.uniform(0.1, 0.4, 2)
            image += rng.uniform(0.2, 1.0) * (((xs - x) / a) ** 2 + ((ys - y) / b) ** 2 < 1)
        stack[:, at] = image.ravel()
    return stack


class AcceleratedSirt:
    """SIRT with Nesterov's momentum and a bound at zero."""

    def __init__(self, system, measured):
        self.system = system
        self.adjoint = system.t()
        self.measured = measured
        self.row_scale = 1 / system.sum(1, keepdim=True).clamp_min(1e-3)
        self.column_scale = 1 / system.sum(0)[:, None].clamp_min(1e-3)

    def run(self, iterations):
        current = self.measured.new_zeros(self.system.shape[1], self.measured.shape[1])
        ahead, pace = current, 1.0
        for _ in range(iterations):
            residual = (self.measured - self.system @ ahead).mul_(self.row_scale)
            following = (self.adjoint @ residual).mul_(self.column_scale).add_(ahead).clamp_min_(0)
            quicker = (1 + (1 + 4 * pace * pace) ** 0.5) / 2
            ahead = torch.lerp(current, following, 1 + (pace - 1) / quicker)
            current, pace = following, quicker
            yield current

    def misfit(self, volume):
        return torch.linalg.vector_norm(self.system @ volume - self.measured).item()
