"""Predicts atmospheric drag on satellites from orbital elements and space weather."""
import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
UPDATES = 450


def make_catalogue(rows, seed):
    rng = np.random.default_rng(seed)
    altitude = rng.uniform(250, 900, rows)
    inclination = rng.uniform(0, 100, rows)
    f107 = rng.gamma(9, 15, rows)
    ap = rng.gamma(2, 6, rows)
    ballistic = rng.lognormal(-4, 0.5, rows)
    density = np.exp(-(altitude - 250) / 55) * (1 + 0.01 * f107) * (1 + 0.02 * ap)
    features = np.stack([altitude / 500, inclination / 100, f107 / 100, ap / 20, ballistic * 50], 1)
    harmonics = [np.sin(k * features) for k in range(1, 7)]
    x = np.concatenate([features] + harmonics, 1)
    y = np.log(density * ballistic)
    return x, (y - y.mean()) / y.std()


class DragNet(nn.Module):
    def __init__(self, inputs, width=256):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                    nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def train():
    torch.manual_seed(0)
    x, y = make_catalogue(40_000, seed=5)
    x, y = torch.from_numpy(x).float(), torch.from_numpy(y).float()
    model = DragNet(x.shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    gen = torch.Generator().manual_seed(5)
    for u in range(UPDATES):
        idx = torch.randint(0, len(x), (384,), generator=gen)
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if u % 150 == 149:
            print(f"update {u + 1}: {loss.item():.5f}")


if __name__ == "__main__":
    train()
