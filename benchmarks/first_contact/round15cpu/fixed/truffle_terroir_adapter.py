"""Fine-tunes a small head for truffle provenance on a spectrometer encoder that stays as it is."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
SAMPLES, BINS, STEPS = (8, 64, 4) if TINY else (96, 512, 110)


class SpectrumEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 32, 7, stride=2, padding=3), nn.GELU(),
            nn.Conv1d(32, 64, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(64, 128, 5, stride=2, padding=2), nn.GELU(),
        )

    def forward(self, spectra):
        return self.body(spectra.unsqueeze(1)).mean(2)


class Provenance(nn.Module):
    def __init__(self, regions=12):
        super().__init__()
        self.encoder = SpectrumEncoder()
        self.regions = nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, regions))

    def forward(self, spectra):
        with torch.no_grad():
            features = self.encoder(spectra)
        return self.regions(features)


def trainable(net, prefix):
    return [weight for name, weight in net.named_parameters() if name.startswith(prefix)]


def harvest():
    origin = torch.randint(0, 12, (SAMPLES,))
    peaks = torch.linspace(0, 1, BINS)
    spectra = torch.exp(-((peaks - origin[:, None] / 12) ** 2) * 300) + 0.3 * torch.randn(SAMPLES, BINS)
    return spectra, origin


def main():
    torch.manual_seed(15)
    net = Provenance()
    optimizer = torch.optim.AdamW(trainable(net, "regions."), lr=3e-3, fused=True)
    for step in range(STEPS):
        spectra, origin = harvest()
        loss = nn.functional.cross_entropy(net(spectra), origin)
        net.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(step, f"{loss.item():.4f}")
    print("end", f"{loss.item():.4f}")


main()
