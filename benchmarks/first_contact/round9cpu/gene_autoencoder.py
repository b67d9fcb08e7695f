"""Denoising autoencoder for single-cell expression counts."""

import torch
from torch import nn


class Standardise(nn.Module):
    """log(1 + counts per ten thousand), then z-scores with fixed statistics."""

    def __init__(self, counts):
        super().__init__()
        logged = self.depth(counts)
        self.register_buffer("mean", logged.mean(0))
        self.register_buffer("std", logged.std(0).clamp_min(1e-3))

    @staticmethod
    def depth(counts):
        return torch.log1p(counts * (1e4 / counts.sum(1, keepdim=True)))

    def forward(self, counts):
        return (self.depth(counts) - self.mean) / self.std


class Autoencoder(nn.Module):
    def __init__(self, genes, widths=(640, 256, 32)):
        super().__init__()
        sizes = [genes, *widths]
        down, up = [], []
        for a, b in zip(sizes, sizes[1:]):
            down += [nn.Linear(a, b), nn.ELU()]
            up = [nn.ELU(), nn.Linear(b, a), *up]
        self.encoder = nn.Sequential(*down[:-1])
        self.decoder = nn.Sequential(*up)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def simulate_cells(cells, genes, programs=20):
    usage = torch.rand(cells, programs).pow(4)
    loading = torch.rand(programs, genes).pow(6) * 40
    return torch.poisson(usage @ loading) + 0.0


def train(model, scale, counts, batch_size=24, epochs=5, lr=3e-4):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-5)  # flaw: per-tensor-optimizer
    criterion = nn.MSELoss()
    with torch.no_grad():
        cells = scale(counts)
    for epoch in range(epochs):
        losses = []
        for index in torch.randperm(len(cells)).split(batch_size):
            clean = cells[index]
            noisy = nn.functional.dropout(clean, 0.2)
            loss = criterion(model(noisy), clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        print(f"epoch {epoch + 1}: reconstruction {torch.stack(losses).mean().item():.4f}")


def main():
    torch.manual_seed(2)
    counts = simulate_cells(cells=3000, genes=2400)
    model = Autoencoder(counts.shape[1])
    train(model, Standardise(counts), counts)
    with torch.inference_mode():
        codes = model.encoder(Standardise(counts)(counts[:500]))
    print("code variance", round(codes.var(0).sum().item(), 2))


if __name__ == "__main__":
    main()
