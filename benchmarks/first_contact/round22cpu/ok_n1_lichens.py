"""A variational autoencoder of lichen reflectance spectra."""
import argparse
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def spectra(count, bands, seed):
    rng = np.random.default_rng(seed)
    axis = np.linspace(0, 1, bands)
    centres = rng.uniform(0.1, 0.9, (1, 5, 1))
    widths = rng.uniform(0.02, 0.1, (1, 5, 1))
    depth = rng.dirichlet(np.ones(5), count)[..., None]
    lines = (depth * np.exp(-0.5 * ((axis - centres) / widths) ** 2)).sum(1)
    slope = rng.uniform(0.2, 0.6, (count, 1)) * axis
    table = 0.3 + slope - 0.5 * lines + rng.normal(0, 0.01, (count, bands))
    return torch.from_numpy(table.astype(np.float32))


def mlp(*sizes, act=nn.SiLU):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Spectral(nn.Module):
    def __init__(self, bands, hidden, latent):
        super().__init__()
        self.encode = mlp(bands, hidden, hidden, 2 * latent)
        self.decode = mlp(latent, hidden, hidden, bands)

    def forward(self, x):
        mean, spread = self.encode(x).chunk(2, 1)
        code = torch.addcmul(mean, torch.randn_like(mean), (0.5 * spread).exp())
        divergence = 0.5 * (mean.square() + spread.exp() - 1 - spread).sum(1).mean()
        return self.decode(code), divergence


def objective(model, x, beta):
    made, divergence = model(x)
    return F.mse_loss(made, x, reduction="sum") / len(x) + beta * divergence


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bands", type=int, default=512)
    p.add_argument("--hidden", type=int, default=512)
    p.add_argument("--latent", type=int, default=16)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--beta", type=float, default=0.1)
    a = p.parse_args()

    torch.manual_seed(2)
    data = spectra(8192, a.bands, seed=2)
    train, held = data[:7680], data[7680:]
    model = Spectral(a.bands, a.hidden, a.latent)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss_of = partial(objective, model, beta=a.beta)

    for epoch in range(1, a.epochs + 1):
        model.train()
        sums = torch.zeros(())
        order = torch.randperm(len(train)).split(a.batch)
        for rows in order:
            loss = loss_of(train[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            sums += loss.detach()
        if epoch % 5 == 0:
            model.eval()
            with torch.inference_mode():
                test = loss_of(held)
            print(f"epoch {epoch:3d} train {sums.item() / len(order):.5f} held out {test.item():.5f}", flush=True)


if __name__ == "__main__":
    main()
