"""Perturb-then-optimise sampling of a Gaussian posterior: every sample solves one large SPD system."""
import math

import torch

torch.set_float32_matmul_precision("high")


class Matern32:
    def __init__(self, lengthscale, variance):
        self.lengthscale = lengthscale
        self.variance = variance

    def __call__(self, a, b):
        r = torch.cdist(a, b) * (math.sqrt(3.0) / self.lengthscale)
        return self.variance * (1.0 + r) * torch.exp(-r)


class ConjugateGradient:
    """CG for a dense operator; the matrix-vector product is bound by memory."""

    def __init__(self, matrix, tol=1e-6, max_iter=60):
        self.matrix = matrix
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, b):
        x = torch.zeros_like(b)
        r = b.clone()
        p = r.clone()
        rs = torch.dot(r, r)
        stop = self.tol**2 * rs
        for it in range(self.max_iter):
            ap = torch.mv(self.matrix, p)
            alpha = rs / torch.dot(p, ap)
            x.addcmul_(alpha, p)
            r.addcmul_(-alpha, ap)
            rs_new = torch.dot(r, r)
            if it % 20 == 19 and (rs_new < stop).item():
                break
            p = torch.addcmul(r, rs_new / rs, p)
            rs = rs_new
        return x


class PosteriorSampler:
    def __init__(self, x, y, kernel, noise):
        self.n = x.shape[0]
        self.noise = noise
        self.y = y
        self.cov = kernel(x, x)
        self.cov.diagonal().add_(noise)
        self.cg = ConjugateGradient(self.cov)
        self.features = torch.randn(x.shape[1], 2048, device=x.device) / kernel.lengthscale
        self.phase = torch.rand(2048, device=x.device) * 2 * math.pi
        self.phi = torch.cos(x @ self.features + self.phase) * math.sqrt(2.0 / 2048)

    def sample(self, gen):
        w = torch.randn(2048, device=self.y.device, generator=gen)
        prior = torch.mv(self.phi, w)
        eps = torch.randn(self.n, device=self.y.device, generator=gen) * math.sqrt(self.noise)
        weights = self.cg.solve(self.y - prior - eps)
        return prior, weights


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    n = 8192 if cuda else 256
    draws = 500 if cuda else 5
    torch.manual_seed(0)
    x = torch.rand(n, 3, device=device) * 4.0
    y = torch.sin(2.0 * x[:, 0]) * torch.cos(x[:, 1]) + 0.1 * torch.randn(n, device=device)
    gen = torch.Generator(device=device).manual_seed(11)

    with torch.inference_mode():
        sampler = PosteriorSampler(x, y, Matern32(0.9, 1.0), noise=0.01)
        mean = torch.zeros(n, device=device)
        second = torch.zeros(n, device=device)
        for i in range(draws):
            prior, weights = sampler.sample(gen)
            fit = prior + torch.mv(sampler.cov, weights) - sampler.noise * weights
            mean.lerp_(fit, 1.0 / (i + 1))
            second.lerp_(fit.square(), 1.0 / (i + 1))
            if (i + 1) % 100 == 0 or i + 1 == draws:
                std = (second - mean.square()).clamp_min(0).sqrt().mean()
                rmse = (mean - y).square().mean().sqrt()
                print(f"draw {i + 1}: rmse {rmse.item():.4f}, mean posterior std {std.item():.4f}")


if __name__ == "__main__":
    main()
