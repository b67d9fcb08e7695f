"""Predict the energy of small molecules with a continuous-filter network."""

import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ELEMENTS = ["H", "C", "N", "O", "F"]


def make_molecules(count, seed=0):
    rng = np.random.default_rng(seed)
    molecules = []
    for index in range(count):
        size = int(rng.integers(14, 24))
        atoms = [
            {
                "element": ELEMENTS[int(k)],
                "position": xyz.tolist(),
                "tags": {"ring": bool(k % 2), "charge": 0.0, "mass": float(k) * 2.0},
            }
            for k, xyz in zip(rng.integers(0, 5, size), rng.normal(size=(size, 3)) * 2)
        ]
        molecules.append({"name": f"mol{index:05d}", "atoms": atoms, "energy": float(rng.normal())})
    return molecules


class MoleculeDataset(Dataset):
    max_atoms = 24

    def __init__(self, molecules):
        self.molecules = molecules
        self.number = {symbol: i + 1 for i, symbol in enumerate(ELEMENTS)}

    def __len__(self):
        return len(self.molecules)

    def __getitem__(self, index):
        molecule = copy.deepcopy(self.molecules[index])  # flaw: slow-sample-line
        atoms = molecule["atoms"]
        numbers = np.zeros(self.max_atoms, dtype=np.int64)
        positions = np.zeros((self.max_atoms, 3), dtype=np.float32)
        numbers[: len(atoms)] = [self.number[atom["element"]] for atom in atoms]
        positions[: len(atoms)] = [atom["position"] for atom in atoms]
        positions[: len(atoms)] -= positions[: len(atoms)].mean(axis=0)
        return numbers, positions, np.float32(molecule["energy"])


class Interaction(nn.Module):
    def __init__(self, width, rbf):
        super().__init__()
        self.filters = nn.Linear(rbf, width)
        self.update = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, basis, mask):
        weights = self.filters(basis) * mask
        message = torch.einsum("bijw,bjw->biw", weights, h)
        return h + self.update(message)


class EnergyNet(nn.Module):
    def __init__(self, width=16, rbf=12, depth=2):
        super().__init__()
        self.embed = nn.Embedding(len(ELEMENTS) + 1, width, padding_idx=0)
        self.register_buffer("centers", torch.linspace(0, 6, rbf))
        self.blocks = nn.ModuleList(Interaction(width, rbf) for _ in range(depth))
        self.readout = nn.Linear(width, 1)

    def forward(self, numbers, positions):
        present = (numbers > 0).float()
        mask = (present[:, :, None] * present[:, None, :]).unsqueeze(-1)
        offsets = positions[:, :, None] - positions[:, None]
        distance = (offsets.square().sum(-1) + 1e-6).sqrt()
        basis = torch.exp(-(distance.unsqueeze(-1) - self.centers).square())
        h = self.embed(numbers)
        for block in self.blocks:
            h = block(h, basis, mask)
        return (self.readout(h).squeeze(-1) * present).sum(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(MoleculeDataset(make_molecules(1280)), batch_size=64, shuffle=True)
    model = EnergyNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(15):
        total = torch.zeros(())
        for numbers, positions, energy in loader:
            loss = nn.functional.mse_loss(model(numbers, positions), energy)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
