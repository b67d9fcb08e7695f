"""A small classifier trained the way first scripts are written. Seconds on a CPU, no data needed.

It is slow in four ordinary ways. `warpline profile examples/quickstart/slow.py` finds them.
"""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"


class Waves(Dataset):
    """Noisy waves of three shapes, computed when asked for, as a file would be decoded."""

    def __init__(self, size=4096, length=256):
        self.size = size
        self.length = length

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        kind = index % 3
        phase = index * 0.37
        points = [math.sin(phase + i * 0.1 * (kind + 1)) for i in range(self.length)]
        noise = torch.randn(self.length) * 0.1
        return torch.tensor(points) + noise, kind


class Norm(nn.Module):
    """Layer normalisation, written out."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        x = (x - mean) / torch.sqrt(variance + 1e-5)
        return self.weight * x + self.bias


class Classifier(nn.Module):
    def __init__(self, length=256, width=512):
        super().__init__()
        self.first = nn.Linear(length, width)
        self.norm = Norm(width)
        self.second = nn.Linear(width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        h = self.norm(self.first(x))
        h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        h = torch.relu(self.second(h))
        return self.head(h)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Waves(), batch_size=64, shuffle=True)
    model = Classifier().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        total = 0.0
        for waves, kinds in loader:
            waves = waves.to(device)
            kinds = kinds.to(device)
            loss = nn.functional.cross_entropy(model(waves), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
