"""Fits a Morse-like pair potential to forces of a noble gas."""
import os
import numpy as np
import torch
from torch import nn


def boxes(count, atoms, seed=2):
    rng = np.random.RandomState(seed)
    return rng.uniform(0, 12.0, (count, atoms, 3)), rng.normal(size=(count, atoms, 3))


class PairPotential(nn.Module):
    def __init__(self, terms):
        super().__init__()
        self.depth = nn.Parameter(torch.full((terms,), 0.1))
        self.width = nn.Parameter(torch.linspace(0.5, 2.0, terms))
        self.place = nn.Parameter(torch.linspace(2.0, 6.0, terms))

    def energy(self, r):
        r = r.unsqueeze(-1)
        return (self.depth * torch.exp(-self.width * (r - self.place) ** 2)).sum(-1)

    def forward(self, pos):
        pos = pos.detach().requires_grad_(True)
        gap = pos.unsqueeze(2) - pos.unsqueeze(1)
        r = (gap.square().sum(-1) + 1e-3).sqrt()
        e = self.energy(r).sum() / 2
        return -torch.autograd.grad(e, pos, create_graph=True)[0]


def main():
    small = os.environ.get("SMALL") == "1"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    count, atoms, batch, terms, steps = (8, 8, 2, 2, 30) if small else (64, 512, 16, 6, 80)
    pos, force = boxes(count, atoms)
    pos = torch.from_numpy(pos).to(device)  # flaw: float64-on-device
    force = torch.from_numpy(force).to(device)  # flaw: float64-on-device
    model = PairPotential(terms).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    for step in range(steps):
        k = step * batch % count
        loss = (model(pos[k : k + batch]) - force[k : k + batch]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 39 or step == steps - 1:
            print(step + 1, loss.item())


if __name__ == "__main__":
    main()
