"""Promoter classification from DNA windows."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    windows: int = 1200
    length: int = 600
    batch: int = 48
    epochs: int = 4
    channels: int = 32
    lr: float = 2e-3


class Genome:
    """A random chromosome; windows with an even index get a planted motif."""

    alphabet = "ACGT"

    def __init__(self, settings, seed=11):
        rng = np.random.default_rng(seed)
        letters = rng.choice(list(self.alphabet), size=settings.windows * settings.length)
        chromosome = bytearray("".join(letters), "ascii")
        self.length = settings.length
        self.starts = np.arange(settings.windows) * settings.length
        for i in range(0, settings.windows, 2):
            at = int(self.starts[i]) + int(rng.integers(20, settings.length - 40))
            chromosome[at:at + 12] = b"TATAAAGGCTAT"
        self.text = chromosome.decode("ascii")

    def window(self, index):
        start = int(self.starts[index])
        return self.text[start:start + self.length]


LOOKUP = np.zeros((128, 4), dtype=np.float32)
for column, letter in enumerate(Genome.alphabet):
    LOOKUP[ord(letter), column] = 1.0


class PromoterWindows(Dataset):
    def __init__(self, genome):
        self.genome = genome

    def __len__(self):
        return len(self.genome.starts)

    def __getitem__(self, index):
        bases = self.genome.window(index)
        if index % 3 == 0:
            bases = bases[::-1]
        onehot = np.array([[float(base == letter) for letter in Genome.alphabet] for base in bases], dtype=np.float32)  # flaw: slow-sample-line
        return torch.from_numpy(onehot.T.copy()), torch.tensor(float(index % 2 == 0))


class PromoterNet(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.stem = nn.Conv1d(4, channels, 12, stride=2)
        self.body = nn.Conv1d(channels, channels, 5, stride=2)
        self.head = nn.Linear(channels, 1)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.body(x))
        return self.head(x.amax(dim=-1)).squeeze(-1)


def run(settings):
    torch.manual_seed(5)
    loader = DataLoader(PromoterWindows(Genome(settings)), batch_size=settings.batch, shuffle=True,
                        generator=torch.Generator().manual_seed(2),
                        num_workers=1, persistent_workers=True, prefetch_factor=4)
    net = PromoterNet(settings.channels)
    opt = torch.optim.Adam(net.parameters(), lr=settings.lr, fused=True)
    history = []
    for _ in range(settings.epochs):
        running = 0.0
        for x, y in loader:
            opt.zero_grad(set_to_none=True)
            loss = F.binary_cross_entropy_with_logits(net(x), y)
            loss.backward()
            opt.step()
            running += loss.item()
        history.append(running / len(loader))
    return history


if __name__ == "__main__":
    print(" ".join(f"{v:.4f}" for v in run(Settings())))
