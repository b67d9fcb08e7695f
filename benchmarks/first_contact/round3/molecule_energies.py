"""Energies of small molecules with continuous-filter convolutions over all pairs of atoms."""
import os
from typing import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class FilterLayer(nn.Module):
    def __init__(self, features: int, radial: int) -> None:
        super().__init__()
        self.filters = nn.Sequential(nn.Linear(radial, features), nn.Softplus(), nn.Linear(features, features))
        self.before = nn.Linear(features, features, bias=False)
        self.after = nn.Sequential(nn.Linear(features, features), nn.Softplus(), nn.Linear(features, features))

    def forward(self, h: Tensor, basis: Tensor, near: Tensor) -> Tensor:
        w = self.filters(basis) * near
        message = (w * self.before(h).unsqueeze(1)).sum(2)
        return h + self.after(message)


class EnergyModel(nn.Module):
    def __init__(self, features: int, radial: int, layers: int, cutoff: float = 5.0) -> None:
        super().__init__()
        self.species = nn.Embedding(10, features)
        self.layers = nn.ModuleList(FilterLayer(features, radial) for _ in range(layers))
        self.read = nn.Sequential(nn.Linear(features, features // 2), nn.Softplus(), nn.Linear(features // 2, 1))
        self.register_buffer("centres", torch.linspace(0, cutoff, radial))
        self.cutoff = cutoff

    def forward(self, z: Tensor, pos: Tensor) -> Tensor:
        r = (pos.unsqueeze(1) - pos.unsqueeze(2)).square().sum(-1, keepdim=True).add(1e-6).sqrt()
        basis = torch.exp(-10.0 * (r - self.centres) ** 2)
        near = (r < self.cutoff).to(r.dtype)
        h = self.species(z)
        for layer in self.layers:
            h = layer(h, basis, near)
        return self.read(h).sum((1, 2))


class Experiment:
    def __init__(self, small: bool) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.batch, self.atoms, self.steps = (4, 6, 30) if small else (128, 24, 100)
        features, radial, layers = (16, 8, 2) if small else (512, 304, 3)
        self.model = EnergyModel(features, radial, layers).to(self.device)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=5e-4, fused=True)

    def batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        n = self.batch * 16
        z = torch.randint(1, 10, (n, self.atoms), device=self.device)
        pos = torch.randn(n, self.atoms, 3, device=self.device) * 2
        energy = torch.randn(n, device=self.device)
        for _ in range(self.steps):
            pick = torch.randint(n, (self.batch,), device=self.device)
            yield z[pick], pos[pick], energy[pick]

    def run(self) -> None:
        error = torch.zeros((), device=self.device)
        for z, pos, energy in self.batches():
            predicted = self.model(z, pos)  # flaw: fp32-matmul
            loss = F.l1_loss(predicted, energy)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            error += loss.detach()
        print(f"mean absolute error {error.item() / self.steps:.4f}")


if __name__ == "__main__":
    Experiment(small=os.environ.get("SMALL") == "1").run()
