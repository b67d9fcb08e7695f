"""Credit default risk: a residual MLP on tabular data with macro features."""
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "data": {"rows": 16384, "columns": 96, "seed": 7},
    "net": {"width": 256, "blocks": 3},
    "train": {"batch": 512, "epochs": 9, "lr": 1e-3},
}


class Portfolio:
    """Loans as a table: raw columns, winsorised and standardised, with a default flag."""

    def __init__(self, rows, columns, seed):
        rng = np.random.default_rng(seed)
        raw = rng.standard_t(4, size=(rows, columns))
        low, high = np.quantile(raw, [0.01, 0.99], axis=0)
        raw = np.clip(raw, low, high)
        weights = rng.standard_normal(columns) / np.sqrt(columns)
        hazard = 1.0 / (1.0 + np.exp(-(raw @ weights + 0.4 * raw[:, 0] * raw[:, 1])))
        flags = rng.random(rows) < hazard
        self.features = torch.from_numpy((raw - raw.mean(0)) / raw.std(0))  # flaw: float64-on-device
        self.defaulted = torch.from_numpy(flags).to(self.features.dtype)

    def minibatches(self, size, generator):
        order = torch.randperm(len(self.features), generator=generator)
        for chunk in order.split(size):
            yield self.features[chunk], self.defaulted[chunk]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width * 2)
        self.outer = nn.Linear(width * 2, width)

    def forward(self, x):
        return x + self.outer(F.relu(self.inner(self.norm(x))))


def build(columns, width, blocks):
    layers = [nn.Linear(columns, width)]
    layers += [Residual(width) for _ in range(blocks)]
    return nn.Sequential(*layers, nn.LayerNorm(width), nn.Linear(width, 1))


def train(portfolio, net, batch, epochs, lr):
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.02, fused=True)
    generator = torch.Generator().manual_seed(1)
    objective = partial(F.binary_cross_entropy_with_logits, reduction="mean")
    for epoch in range(epochs):
        losses = []
        for x, y in portfolio.minibatches(batch, generator):
            optimizer.zero_grad(set_to_none=True)
            loss = objective(net(x).squeeze(-1), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        yield epoch, sum(losses) / len(losses)


def main(config):
    torch.manual_seed(0)
    portfolio = Portfolio(**config["data"])
    net = build(config["data"]["columns"], **config["net"]).to(portfolio.features.dtype)
    for epoch, loss in train(portfolio, net, **config["train"]):
        print(f"{epoch}: {loss:.3f}")


if __name__ == "__main__":
    main(CONFIG)
