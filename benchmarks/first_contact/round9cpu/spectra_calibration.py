"""Calibrates sugar content from near-infrared spectra with a 1-D ResNet."""

import numpy as np
import torch
from torch import nn


def measure(n=900, bands=256, seed=0):
    rng = np.random.default_rng(seed)
    wave = np.linspace(900, 1700, bands)
    peaks = np.exp(-(((wave - np.array([[980], [1200], [1450], [1580]])) / 40) ** 2))
    share = rng.dirichlet([2, 2, 4, 1], n)
    baseline = rng.normal(0, 0.1, (n, 1)) + rng.normal(0, 0.05, (n, 1)) * (wave - 1300) / 400
    spectra = share @ peaks + baseline + rng.normal(0, 0.005, (n, bands))
    return spectra, share[:, 1] * 30


def snv(spectra):
    """Standard normal variate correction."""
    return (spectra - spectra.mean(1, keepdims=True)) / spectra.std(1, keepdims=True)


class ResBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv1d(cin, cout, 7, padding=3, stride=2, bias=False),
            nn.BatchNorm1d(cout),
            nn.ReLU(),
            nn.Conv1d(cout, cout, 7, padding=3, bias=False),
            nn.BatchNorm1d(cout),
        )
        self.short = nn.Conv1d(cin, cout, 1, stride=2)

    def forward(self, x):
        return torch.relu(self.main(x) + self.short(x))


class SpectraNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.blocks = nn.Sequential(ResBlock(1, width), ResBlock(width, width), ResBlock(width, 2 * width))
        self.out = nn.Linear(2 * width, 1)

    def forward(self, spectrum):
        return self.out(self.blocks(spectrum[:, None]).mean(2)).squeeze(1)


def main():
    torch.manual_seed(0)
    spectra, sugar = measure()
    x = torch.from_numpy(snv(spectra))  # flaw: float64-on-device
    y = torch.from_numpy(sugar)  # flaw: float64-on-device
    y_mean, y_std = y.mean(), y.std()
    model = SpectraNet().double()  # flaw: float64-on-device
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    train, test = torch.arange(768), torch.arange(768, 900)
    for epoch in range(9):
        model.train()
        for index in train[torch.randperm(len(train))].split(64):
            target = (y[index] - y_mean) / y_std
            loss = nn.functional.mse_loss(model(x[index]), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            guess = model(x[test]) * y_std + y_mean
        rmsep = (guess - y[test]).square().mean().sqrt()
        print(f"epoch {epoch} rmsep {rmsep.item():.3f}")


if __name__ == "__main__":
    main()
