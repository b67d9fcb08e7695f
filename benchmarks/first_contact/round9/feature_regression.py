"""Bayesian regression with random Fourier features: stream the data, keep the sufficient statistics."""
import argparse
import math

import torch


class RandomFourierFeatures:
    def __init__(self, dim, count, lengthscale, device):
        self.weight = torch.randn(dim, count, device=device) / lengthscale
        self.phase = torch.rand(count, device=device) * (2 * math.pi)
        self.scale = math.sqrt(2.0 / count)

    def __call__(self, x):
        return torch.addmm(self.phase, x, self.weight).cos_()


class StreamingPosterior:
    """Gram matrix and projections in single precision, solved once at the end."""

    def __init__(self, features, noise, prior=1.0):
        self.features = features
        n = features.weight.shape[1]
        device = features.weight.device
        self.gram = torch.zeros(n, n, device=device)
        self.proj = torch.zeros(n, device=device)
        self.noise, self.prior = noise, prior
        self.count = 0

    def update(self, x, y):
        phi = self.features(x)
        self.gram.addmm_(phi.T, phi)
        self.proj.addmv_(phi.T, y)
        self.count += len(y)

    def solve(self):
        c = self.features.scale
        precision = self.gram * (c * c / self.noise)
        precision.diagonal().add_(self.prior)
        self.factor = torch.linalg.cholesky(precision)
        rhs = self.proj[:, None] * (c / self.noise)
        self.mean = torch.cholesky_solve(rhs, self.factor)[:, 0]
        return self

    def predict(self, x):
        phi = self.features(x) * self.features.scale
        whitened = torch.linalg.solve_triangular(self.factor, phi.T, upper=False)
        return phi @ self.mean, whitened.square().sum(0) + self.noise


def stream(chunks, size, dim, device, noise_std):
    gen = torch.Generator(device=device).manual_seed(9)
    for _ in range(chunks):
        x = torch.rand(size, dim, device=device, generator=gen) * 2 - 1
        y = torch.sin(3 * x[:, 0]) * x[:, 1] + x[:, 2:5].square().sum(1)
        yield x, y + noise_std * torch.randn(size, device=device, generator=gen)


@torch.inference_mode()
def main():
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=240 if cuda else 5)
    parser.add_argument("--chunk-size", type=int, default=65536 if cuda else 64)
    parser.add_argument("--features", type=int, default=8192 if cuda else 64)
    parser.add_argument("--dim", type=int, default=32 if cuda else 8)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if cuda else "cpu")
    noise_std = 0.1
    features = RandomFourierFeatures(args.dim, args.features, lengthscale=3.0, device=device)
    posterior = StreamingPosterior(features, noise=noise_std**2)
    for x, y in stream(args.chunks, args.chunk_size, args.dim, device, noise_std):
        posterior.update(x, y)

    posterior.solve()
    x, y = next(stream(1, 4096 if cuda else 32, args.dim, device, noise_std))
    mean, variance = posterior.predict(x)
    rmse = (mean - y).square().mean().sqrt().item()
    print(f"{posterior.count} rows, rmse {rmse:.4f}, mean std {variance.sqrt().mean().item():.4f}")


if __name__ == "__main__":
    main()
