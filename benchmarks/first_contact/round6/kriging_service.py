# answers queries for a soil map: mean and variance of a Gaussian process at the asked places
import os
import sys

import torch

SMALL = os.environ.get("SMALL", "") not in ("", "0")
device = "cuda" if torch.cuda.is_available() else "cpu"


class Matern:
    def __init__(self, lengthscale=0.7, scale=1.0):
        self.lengthscale, self.scale = lengthscale, scale

    def __call__(self, a, b):
        r = torch.cdist(a, b).mul_(3**0.5 / self.lengthscale)
        return torch.exp(-r).mul_(r.add_(1)).mul_(self.scale)


class Field:
    """Observations with a kernel; knows the posterior at new places."""

    def __init__(self, places, values, kernel, noise=0.1):
        self.places, self.values, self.kernel, self.noise = places, values, kernel, noise

    def _cholesky(self):
        gram = self.kernel(self.places, self.places)
        gram.diagonal().add_(self.noise)
        return torch.linalg.cholesky_ex(gram).L

    def _state(self):
        chol = self._cholesky()  # flaw: constant-rebuilt
        return chol, torch.cholesky_solve(self.values, chol)  # flaw: constant-rebuilt

    def posterior(self, query):
        chol, weights = self._state()
        cross = self.kernel(self.places, query)
        half = torch.linalg.solve_triangular(chol, cross, upper=False)
        return cross.T @ weights, self.kernel.scale - half.square_().sum(0)


def requests(n, size, dim):
    g = torch.Generator(device=device).manual_seed(5)
    while n:
        yield torch.rand(size, dim, device=device, generator=g) * 4
        n -= 1


def simulate(n, dim):
    g = torch.Generator(device=device).manual_seed(2)
    places = torch.rand(n, dim, device=device, generator=g) * 4
    values = torch.sin(places.sum(1, keepdim=True)) + 0.1 * torch.randn(n, 1, device=device, generator=g)
    return places, values


@torch.inference_mode()
def serve(field, stream):
    answered = 0
    surest = torch.full((), float("inf"), device=device)
    for query in stream:
        mean, var = field.posterior(query)
        surest = torch.minimum(surest, var.min())
        answered += len(mean)
    return answered, surest.item()


def main(argv):
    n, q, rounds = (200, 32, 30) if SMALL else (6000, 1536, 120)
    field = Field(*simulate(n, 3), Matern())
    count, surest = serve(field, requests(rounds, q, 3))
    print(f"{count} answers, smallest variance {surest:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
