"""Energies of crystals by ridge regression on random Fourier features, fitted by averaged SGD."""
import os
import numpy as np
import torch

torch.set_float32_matmul_precision("high")


class RandomFeatures:
    def __init__(self, inputs, features, scale, device, seed=0):
        rng = np.random.default_rng(seed)
        self.omega = torch.as_tensor(rng.normal(0, scale, (inputs, features)), dtype=torch.float32, device=device)
        self.phase = torch.as_tensor(rng.uniform(0, 2 * np.pi, features), dtype=torch.float32, device=device)

    def __call__(self, x):
        return torch.addmm(self.phase, x.to(self.omega), self.omega).cos_()


class Ridge:
    def __init__(self, features, targets, lr, penalty):
        self.features = features
        count = features.omega.shape[1]
        self.weights = features.omega.new_zeros(count, targets)
        self.mean = torch.zeros_like(self.weights)
        self.lr, self.penalty, self.seen = lr, penalty, 0

    def partial_fit(self, x, y):
        phi = self.features(x)
        error = phi @ self.weights - y
        self.weights.mul_(1 - self.lr * self.penalty).addmm_(phi.T, error, alpha=-self.lr / len(x))
        self.seen += 1
        self.mean.lerp_(self.weights, 1 / self.seen)
        return error.square().mean()


def crystals(rows, inputs, targets, device):
    mix = torch.randn(inputs, targets, device=device) / inputs**0.5
    while True:
        x = torch.randn(rows, inputs, device=device)
        yield x, torch.sin(x @ mix)


@torch.no_grad()
def fit(rows, inputs, features, targets, steps):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    ridge = Ridge(RandomFeatures(inputs, features, inputs**-0.5, device), targets, 2 / features, 1e-4)
    stream = crystals(rows, inputs, targets, device)
    errors = [ridge.partial_fit(*next(stream)) for _ in range(steps)]
    print("first %.4f last %.4f norm %.4f" % (errors[0].item(), errors[-1].item(), ridge.mean.norm().item()))


fit(*((64, 8, 32, 4, 5) if os.environ.get("TINY") == "1" else (65536, 512, 4096, 64, 1500)))
