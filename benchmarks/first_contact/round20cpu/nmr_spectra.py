#!/usr/bin/env python
"""Train a 1-D CNN that quantifies metabolites in simulated NMR spectra."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def get_parser():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-spectra", type=int, default=1500)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--metabolites", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    return parser


def lorentzian(ppm, centre, width):
    return width**2 / ((ppm - centre) ** 2 + width**2)


def simulate(args, rng):
    """Mixtures of Lorentzian multiplets with baseline and noise."""
    ppm = np.linspace(0.5, 9.5, args.points)
    library = []
    for _ in range(args.metabolites):
        peaks = rng.uniform(0.8, 9.2, size=rng.integers(3, 8))
        heights = rng.uniform(0.3, 1.0, size=len(peaks))
        library.append(sum(h * lorentzian(ppm, c, 0.05) for c, h in zip(peaks, heights)))
    conc = rng.gamma(2.0, 0.5, size=(args.n_spectra, args.metabolites))
    spectra = conc @ np.stack(library)
    baseline = rng.normal(0, 0.1, size=(args.n_spectra, 3)) @ np.stack([ppm**0, ppm / 9, (ppm / 9) ** 2])
    spectra += baseline + rng.normal(0, 0.02, size=spectra.shape)
    spectra -= spectra.mean(axis=1, keepdims=True)
    spectra /= spectra.std(axis=1, keepdims=True)
    return spectra, np.log1p(conc)


class SpectraCNN(nn.Module):
    def __init__(self, outputs, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, width, 9, stride=2, padding=4), nn.ReLU(),
            nn.Conv1d(width, width, 7, padding=3), nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, 2 * width, 5, padding=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(16),
        )
        self.regressor = nn.Sequential(nn.Flatten(), nn.Linear(32 * width, 64), nn.ReLU(), nn.Linear(64, outputs))

    def forward(self, x):
        return self.regressor(self.features(x))


def build_tensors(args):
    spectra, targets = simulate(args, np.random.default_rng(args.seed))
    x = torch.from_numpy(spectra).unsqueeze(1)  # flaw: float64-on-device
    y = torch.from_numpy(targets)  # flaw: float64-on-device
    return x, y


def main(args):
    torch.manual_seed(args.seed)
    x, y = build_tensors(args)
    model = SpectraCNN(args.metabolites).to(x.dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
    for epoch in range(args.epochs):
        running, seen = 0.0, 0
        for idx in torch.randperm(len(x)).split(args.batch_size):
            loss = F.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
            seen += len(idx)
        print(f"epoch {epoch + 1:2d}/{args.epochs}  mse {running / seen:.5f}")


if __name__ == "__main__":
    main(get_parser().parse_args())
