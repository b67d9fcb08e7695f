"""Predict the melting temperature of proteins from their 3-mer composition.

Sequences are tokenised into overlapping 3-mers on the fly, because the crop is random in each epoch.
"""

import itertools
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"


class MeltingSet(Dataset):
    """(3-mer ids, Tm) pairs of synthetic proteins."""

    def __init__(self, n: int, crop: int, seed: int = 0):
        rng = random.Random(seed)
        self.crop = crop
        self.proteins = ["".join(rng.choices(RESIDUES, k=rng.randint(crop, 3 * crop))) for _ in range(n)]
        self.targets = [self._melting_point(p) for p in self.proteins]
        self.kmers = {"".join(t): i for i, t in enumerate(itertools.product(RESIDUES, repeat=3))}

    @staticmethod
    def _melting_point(protein: str) -> float:
        charged = sum(protein.count(r) for r in "DEKR") / len(protein)
        greasy = sum(protein.count(r) for r in "AILMFVW") / len(protein)
        return 4.0 * (greasy - 0.35) + 6.0 * (charged - 0.2)

    def __len__(self) -> int:
        return len(self.proteins)

    def __getitem__(self, i: int):
        protein = self.proteins[i]
        start = random.randrange(len(protein) - self.crop + 1)
        piece = protein[start : start + self.crop]
        ids = [self.kmers[piece[j : j + 3]] for j in range(len(piece) - 2)]
        return torch.tensor(ids), torch.tensor(self.targets[i])


class ThermoNet(nn.Module):
    def __init__(self, vocab: int = len(RESIDUES) ** 3, dim: int = 64, width: int = 224):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList([nn.Conv1d(dim, width, k, padding=k // 2) for k in (3, 5, 7)])
        self.regress = nn.Sequential(nn.Linear(3 * width, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, ids):
        x = self.table(ids).transpose(1, 2)
        pooled = torch.cat([F.relu(conv(x)).amax(dim=2) for conv in self.convs], dim=1)
        return self.regress(pooled).squeeze(1)


class Trainer:
    def __init__(self, model: nn.Module, data: Dataset, batch_size: int):
        self.model = model
        self.loader = DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        self.history: list[float] = []

    def one_epoch(self) -> float:
        losses = []
        for ids, tm in self.loader:
            loss = F.smooth_l1_loss(self.model(ids), tm)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        self.history.append(sum(losses) / len(losses))
        return self.history[-1]


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    trainer = Trainer(ThermoNet(), MeltingSet(n=960, crop=80), batch_size=16)
    for epoch in range(4):
        print(f"epoch {epoch}: huber {trainer.one_epoch():.5f}")
