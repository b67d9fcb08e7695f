"""Surrogate of a boundary-layer scheme: profiles of wind and temperature in, surface fluxes out.

Written in a functional style: a network is a list of (weight, bias) pairs.
"""

import math
from functools import partial, reduce

import numpy as np
import torch

N_LEVELS = 40
N_FLUXES = 3
WIDTHS = (2 * N_LEVELS + 2, 320, 320, 320, N_FLUXES)


def sample_columns(rng, n):
    """Random but smooth atmospheric columns."""
    z = np.linspace(0.0, 1.0, N_LEVELS)
    shear = rng.uniform(0.5, 2.0, (n, 1))
    lapse = rng.uniform(-1.0, 1.0, (n, 1))
    rough = rng.uniform(0.01, 0.1, (n, 1))
    wind = shear * np.log1p(z / rough) / math.log(11.0) + 0.05 * rng.normal(size=(n, N_LEVELS))
    heat = lapse * z + 0.2 * np.sin(2 * math.pi * z) + 0.05 * rng.normal(size=(n, N_LEVELS))
    extra = np.concatenate([rough * 10, lapse], axis=1)
    return np.concatenate([wind, heat, extra], axis=1), fluxes_of(shear, lapse, rough)


def fluxes_of(shear, lapse, rough):
    drag = (0.4 / np.log(1.0 / rough)) ** 2
    momentum = drag * shear**2
    sensible = -drag * shear * lapse
    latent = 0.6 * drag * shear * (1.0 - np.tanh(lapse))
    return np.concatenate([momentum, sensible, latent], axis=1) * 20.0


def init_layers(rng, widths):
    layers = []
    for fan_in, fan_out in zip(widths[:-1], widths[1:]):
        w = torch.from_numpy(rng.normal(0.0, math.sqrt(2.0 / fan_in), (fan_in, fan_out)))  # flaw: float64-on-device
        b = torch.zeros(fan_out, dtype=w.dtype)
        layers.append((w.requires_grad_(), b.requires_grad_()))
    return layers


def dense(h, layer, last):
    w, b = layer
    h = torch.addmm(b, h, w)
    return h if last else torch.relu(h)


def predict(layers, columns):
    hidden = reduce(partial(dense, last=False), layers[:-1], columns)
    return dense(hidden, layers[-1], last=True)


def standardise(table):
    return (table - table.mean(0)) / (table.std(0) + 1e-8)


def minibatches(n, size, rounds, gen):
    for _ in range(rounds):
        order = torch.randperm(n, generator=gen)
        yield from order.split(size)


def main():
    torch.set_num_threads(1)
    rng = np.random.default_rng(19)
    gen = torch.Generator().manual_seed(19)
    columns, fluxes = sample_columns(rng, 16_384)
    inputs = torch.from_numpy(standardise(columns))  # flaw: float64-on-device
    targets = torch.from_numpy(standardise(fluxes))  # flaw: float64-on-device

    layers = init_layers(rng, WIDTHS)
    flat = [t for pair in layers for t in pair]
    optimizer = torch.optim.SGD(flat, lr=0.01, momentum=0.9, fused=True)

    for i, rows in enumerate(minibatches(len(inputs), 256, 18, gen), start=1):
        error = predict(layers, inputs[rows]) - targets[rows]
        loss = error.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 256 == 0:
            print(f"{i:5d} updates: normalised error {loss.item():.4f}")


if __name__ == "__main__":
    main()
