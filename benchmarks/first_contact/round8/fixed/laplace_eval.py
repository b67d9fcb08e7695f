"""Evaluate a regression network with a last-layer Laplace approximation: RMSE, NLL and calibration."""
import math

import torch
import torch.nn as nn


class FeatureNet(nn.Module):
    def __init__(self, n_in, width, depth, n_feat):
        super().__init__()
        sizes = [n_in] + [width] * depth + [n_feat]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        self.act = nn.GELU()
        self.norm = nn.LayerNorm(n_feat)

    def forward(self, x):
        for layer in self.layers:
            x = self.act(layer(x))
        return self.norm(x)


class LastLayerLaplace:
    """Gaussian posterior over the weights of a linear read-out."""

    def __init__(self, n_feat, prior_precision, noise_var, device):
        self.precision = prior_precision * torch.eye(n_feat, device=device)
        self.moment = torch.zeros(n_feat, device=device)
        self.noise_var = noise_var

    def observe(self, phi, y):
        self.precision.addmm_(phi.t(), phi, alpha=1 / self.noise_var)
        self.moment.addmv_(phi.t(), y, alpha=1 / self.noise_var)

    def finish(self):
        chol = torch.linalg.cholesky(self.precision)
        self.cov = torch.cholesky_inverse(chol)
        self.mean = self.cov @ self.moment

    def predict(self, phi):
        mean = phi @ self.mean
        var = torch.linalg.vecdot(phi @ self.cov, phi) + self.noise_var
        return mean, var


class Calibration:
    def __init__(self, levels, device):
        self.z = torch.distributions.Normal(0, 1).icdf(0.5 + levels / 2).to(device)
        self.levels = levels
        self.hits = torch.zeros(len(levels), device=device)
        self.sq, self.nll, self.n = torch.zeros((), device=device), torch.zeros((), device=device), 0

    def update(self, mean, var, y):
        err = y - mean
        self.sq += err.square().sum()
        self.nll += 0.5 * (err.square() / var + var.log() + math.log(2 * math.pi)).sum()
        self.hits += (err.abs()[:, None] < var.sqrt()[:, None] * self.z).sum(0)
        self.n += len(y)

    def report(self):
        covered = (self.hits / self.n).tolist()
        print(f"rmse {(self.sq / self.n).sqrt().item():.4f}  nll {(self.nll / self.n).item():.4f}")
        for level, got in zip(self.levels.tolist(), covered):
            print(f"  nominal {level:.2f}  observed {got:.3f}")


@torch.inference_mode()
def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    n_in, width, depth, n_feat = (256, 4096, 5, 2048) if cuda else (8, 32, 2, 16)
    batch, fit_batches, eval_batches = (16384, 20, 300) if cuda else (64, 4, 6)

    net = FeatureNet(n_in, width, depth, n_feat).to(device).eval()
    w = torch.randn(n_in, device=device) / n_in**0.5

    def draw():
        x = torch.randn(batch, n_in, device=device)
        return x, torch.sin(2 * (x @ w)) + 0.2 * torch.randn(batch, device=device)

    def features(x):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            return net(x).float()

    laplace = LastLayerLaplace(n_feat, 1.0, 0.04, device)
    for _ in range(fit_batches):
        x, y = draw()
        laplace.observe(features(x), y)
    laplace.finish()

    stats = Calibration(torch.tensor([0.5, 0.8, 0.9, 0.95, 0.99]), device)
    for b in range(eval_batches):
        x, y = draw()
        mean, var = laplace.predict(features(x))
        stats.update(mean, var, y)
        if (b + 1) % 100 == 0:
            print(f"{stats.n} points")
    stats.report()


if __name__ == "__main__":
    main()
