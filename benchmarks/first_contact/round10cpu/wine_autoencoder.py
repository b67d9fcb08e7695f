"""Denoising autoencoder on spectra of wine, PyTorch at its plainest."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def spectra(count, bands, seed=0):
    g = torch.Generator().manual_seed(seed)
    axis = torch.linspace(0, 1, bands)
    centers = torch.rand(count, 5, 1, generator=g)
    widths = 0.01 + 0.05 * torch.rand(count, 5, 1, generator=g)
    return torch.exp(-((axis - centers) / widths) ** 2).sum(1)


class Autoencoder(nn.Module):
    def __init__(self, bands=1024, hidden=1024, code=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(bands, hidden), nn.ReLU(), nn.Linear(hidden, code)
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, bands)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def collate(samples):
    clean = torch.stack([sample[0] for sample in samples])
    return clean + 0.05 * torch.randn_like(clean), clean


if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(spectra(2560, 1024))
    loader = DataLoader(data, batch_size=64, shuffle=True, collate_fn=collate)
    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)  # flaw: per-tensor-optimizer
    loss_fn = nn.MSELoss()
    for epoch in range(6):
        seen = torch.zeros(())
        for noisy, clean in loader:
            loss = loss_fn(model(noisy), clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += loss.detach()
        print(f"epoch {epoch} mse {seen.item() / len(loader):.5f}")
