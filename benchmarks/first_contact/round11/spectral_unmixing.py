"""Unmix a hyperspectral image into materials: non-negative matrix factorisation by multiplicative updates."""
import logging
from dataclasses import dataclass

import torch

torch.set_float32_matmul_precision("high")  # bfloat16 would lose the weak materials
logger = logging.getLogger("unmix")
EPSILON = 1e-6


@dataclass(frozen=True)
class Problem:
    pixels: int
    bands: int
    materials: int
    sweeps: int
    report: int


LARGE = Problem(pixels=131072, bands=4096, materials=512, sweeps=150, report=50)
SMALL = Problem(pixels=128, bands=32, materials=8, sweeps=6, report=3)


def rescale(factor, numerator, denominator):
    return factor * numerator / (denominator + EPSILON)


class Unmixer:
    """image ~ abundance @ spectra, all non-negative."""

    def __init__(self, image, materials, gen):
        pixels, bands = image.shape
        scale = (image.mean() / materials).sqrt()
        self.image = image
        self.abundance = scale * (0.5 + torch.rand(pixels, materials, generator=gen, device=image.device))
        self.spectra = scale * (0.5 + torch.rand(materials, bands, generator=gen, device=image.device))
        compiled = image.device.type == "cuda"
        self.rescale = torch.compile(rescale, dynamic=True) if compiled else rescale
        self.power = image.square().sum(dtype=torch.float64)

    def sweep(self):
        w, h = self.abundance, self.spectra
        h = self.rescale(h, w.T @ self.image, (w.T @ w) @ h)
        w = self.rescale(w, self.image @ h.T, w @ (h @ h.T))
        self.abundance, self.spectra = w, h

    def residual(self):
        """Relative squared error, without forming the product."""
        w, h = self.abundance, self.spectra
        cross = (w * (self.image @ h.T)).sum(dtype=torch.float64)
        square = ((w.T @ w) * (h @ h.T)).sum(dtype=torch.float64)
        return ((self.power - 2 * cross + square) / self.power).item()


def synthetic_image(problem, gen, device):
    """Mixtures of smooth spectra with sparse abundances, plus noise."""
    n = problem.materials // 2
    grid = torch.linspace(0, 1, problem.bands, device=device)
    centre = torch.rand(n, 1, generator=gen, device=device)
    spectra = torch.exp(-((grid - centre) / 0.1).square())
    abundance = torch.rand(problem.pixels, n, generator=gen, device=device).pow_(8)
    image = abundance @ spectra
    return image.add_(torch.rand(image.shape, generator=gen, device=device), alpha=0.01)


@torch.no_grad()
def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    problem = LARGE if gpu else SMALL
    gen = torch.Generator(device).manual_seed(180)
    unmixer = Unmixer(synthetic_image(problem, gen, device), problem.materials, gen)
    for sweep in range(1, problem.sweeps + 1):
        unmixer.sweep()
        if sweep % problem.report == 0:
            logger.info("sweep %d: relative error %.5f", sweep, unmixer.residual())


if __name__ == "__main__":
    main()
