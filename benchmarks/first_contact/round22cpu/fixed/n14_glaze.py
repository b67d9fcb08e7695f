"""Colour of a glaze from its recipe and firing curve, with learned splines."""
import argparse
import random

import numpy as np
import torch
from torch import nn

from n14_glaze_lib import SplineNet

OXIDES, FIRING, COLOURS = 32, 16, 8


def kiln(tests: int, seed: int):
    rng = np.random.default_rng(seed)
    recipe = rng.dirichlet(np.full(OXIDES, 0.5), tests) * 4 - 1
    firing = np.cumsum(rng.normal(0, 0.3, (tests, FIRING)), axis=1).clip(-1, 1)
    inputs = np.concatenate([recipe, firing], axis=1).astype(np.float32)
    mixing = rng.normal(0, 0.4, (OXIDES + FIRING, COLOURS))
    colour = np.sin(2 * inputs @ mixing) + rng.normal(0, 0.02, (tests, COLOURS))
    return torch.from_numpy(inputs), torch.from_numpy(colour.astype(np.float32))


def seed_all(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", type=int, default=8192)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=45)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=40)
    options = parser.parse_args()

    seed_all(options.seed)
    inputs, colours = kiln(options.tests, options.seed)
    model = SplineNet([OXIDES + FIRING, options.width, COLOURS])
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, fused=True)
    criterion = nn.MSELoss()

    for epoch in range(options.epochs):
        losses = torch.zeros(())
        parts = torch.randperm(options.tests).split(options.batch)
        for rows in parts:
            optimizer.zero_grad()
            loss = criterion(model(inputs[rows]), colours[rows])
            loss.backward()
            optimizer.step()
            losses += loss.detach()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} loss {losses.item() / len(parts):.6f}", flush=True)


if __name__ == "__main__":
    main()
