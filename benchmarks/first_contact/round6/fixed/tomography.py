"""Simultaneous iterative reconstruction (SIRT) of many slices with one system matrix."""

import os

import numpy as np
import torch

torch.set_float32_matmul_precision("high")


class Scanner:
    """Rays through a square grid, with the lengths of their paths through its cells."""

    def __init__(self, rays, cells, seed=0):
        self.rays, self.cells = rays, cells
        self.rng = np.random.default_rng(seed)

    def lengths(self):
        middle = self.rng.random((self.rays, 1)) * self.cells
        spread = 4 + self.rng.random((self.rays, 1)) * self.cells / 8
        return np.exp(-(((np.arange(self.cells) - middle) / spread) ** 2))


class Operator:
    """A linear map with its adjoint, and the weights that SIRT divides by."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.row = 1 / matrix.sum(1, keepdim=True).clamp_min(1e-6)
        self.col = 1 / matrix.sum(0).unsqueeze(1).clamp_min(1e-6)

    @classmethod
    def of(cls, scanner, device):
        return cls(torch.from_numpy(scanner.lengths()).to(device, torch.float32))

    def __matmul__(self, x):
        return self.matrix @ x

    def back(self, y):
        return self.matrix.t() @ y

    def new(self, *shape):
        return self.matrix.new_zeros(shape)


def sirt(op, measured, guess, sweeps):
    for _ in range(sweeps):
        residual = torch.sub(measured, op @ guess).mul_(op.row)
        guess = torch.addcmul(guess, op.back(residual), op.col).clamp_min_(0)
    return guess


def slices(op, cells, width, count):
    for i in range(count):
        phantom = op.new(cells, width).bernoulli_(0.1 + 0.001 * i)
        yield phantom, op @ phantom


@torch.inference_mode()
def main():
    small = os.environ.get("SMALL")
    rays, cells, width, count, sweeps = (64, 48, 8, 30, 2) if small else (6144, 4096, 512, 80, 8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    op = Operator.of(Scanner(rays, cells), device)
    worst = op.new(1)
    for phantom, sinogram in slices(op, cells, width, count):
        image = sirt(op, sinogram, op.new(cells, width), sweeps)
        worst = torch.maximum(worst, (image - phantom).square().mean())
    print(f"{count} batches of {width} slices, worst error {worst.item():.4f}")


main()
