"""Variational autoencoder of pollen spectra with a slowly rising divergence weight, compiled."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
UNIT = "cuda" if torch.cuda.is_available() else "cpu"
BANDS, HIDDEN, CODE, ROWS, STEPS = (24, 32, 4, 16, 5) if TINY else (512, 6144, 64, 32768, 200)


class Annealed:
    """Mixin: counts updates and gives the weight that has been reached."""

    def begin(self, warm):
        self.warm = warm
        self.register_buffer("updates", torch.zeros(()))

    def advance(self):
        self.updates += 1

    def weight(self):
        return 1e-3 + (1 - 1e-3) * self.updates / self.warm


class PollenVAE(Annealed, nn.Module):
    def __init__(self):
        super().__init__()
        self.begin(warm=STEPS)
        self.encode = nn.Sequential(nn.Linear(BANDS, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 2 * CODE))
        self.decode = nn.Sequential(nn.Linear(CODE, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, BANDS))

    def forward(self, spectrum, noise):
        mean, spread = self.encode(spectrum).float().chunk(2, -1)
        again = self.decode(mean + noise * torch.exp(0.5 * spread)).float()
        divergence = 0.5 * (mean.square() + spread.exp() - 1 - spread).sum(-1).mean()
        return F.mse_loss(again, spectrum, reduction="none").sum(-1).mean() + self.weight() * divergence


def herbarium():
    g = torch.Generator(device=UNIT).manual_seed(61)
    peak = torch.rand(4 * ROWS, 3, 1, generator=g, device=UNIT)
    band = torch.linspace(0, 1, BANDS, device=UNIT)
    spectra = torch.zeros(4 * ROWS, BANDS, device=UNIT)
    for k in range(3):
        spectra += torch.exp(-((band - peak[:, k]) / 0.05) ** 2)
    return spectra, g


def learn():
    torch.manual_seed(60)
    torch.set_float32_matmul_precision("high")
    spectra, g = herbarium()
    vae = PollenVAE().to(UNIT)
    step = torch.compile(vae)
    opt = torch.optim.AdamW(vae.parameters(), lr=1e-4, fused=True)
    curve = []
    for n in range(STEPS):
        batch = spectra[n % 4 * ROWS:(n % 4 + 1) * ROWS]
        noise = torch.randn(ROWS, CODE, generator=g, device=UNIT)
        with torch.autocast(UNIT, dtype=torch.bfloat16):
            loss = step(batch, noise)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        vae.advance()
        curve.append(loss.detach())
    print("bound %.3f -> %.3f" % (curve[0].item(), curve[-1].item()))


if __name__ == "__main__":
    learn()
