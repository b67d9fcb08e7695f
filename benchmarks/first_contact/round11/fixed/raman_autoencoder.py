"""Denoising autoencoder for Raman spectra (one reading per wavenumber, 399..3399 in steps of 1)."""
import math

import torch
import torch.nn.functional as F
from torch import nn

MODELS = {}


def register(name):
    def keep(cls):
        MODELS[name] = cls
        return cls
    return keep


def aligned(n):
    """The next multiple of 8: tensor cores read and write rows of 16 bytes."""
    return -(-n // 8) * 8


def dense(n_in, n_out, gen):
    layer = nn.Linear(aligned(n_in), aligned(n_out))
    with torch.no_grad():
        start = torch.randn(n_out, n_in, generator=gen) / math.sqrt(n_in)
        layer.weight.zero_()[:n_out, :n_in] = start
        layer.bias.zero_()
    return layer


@register("bottleneck")
class Bottleneck(nn.Module):
    def __init__(self, bins, width, code, seed=0):
        super().__init__()
        gen = torch.Generator().manual_seed(seed)
        self.read = dense(bins, width, gen)
        self.encode = dense(width, code, gen)
        self.decode = dense(code, width, gen)
        self.write = dense(width, bins, gen)

    def forward(self, spectra):
        h = F.relu(self.read(spectra), inplace=True)
        z = F.relu(self.encode(h), inplace=True)
        h = F.relu(self.decode(z), inplace=True)
        return self.write(h)


def measured_spectra(count, wavenumbers, gen, device):
    """Sums of Lorentzian lines, bfloat16."""
    lines = torch.rand(count, 6, generator=gen, device=device) * 3000 + 400
    heights = torch.rand(count, 6, generator=gen, device=device)
    spectra = torch.zeros(count, len(wavenumbers), device=device)
    for j in range(6):
        offset = wavenumbers - lines[:, j:j + 1]
        spectra.addcdiv_(heights[:, j:j + 1] * 400, offset.square().add_(400))
    spectra = F.pad(spectra, (0, aligned(len(wavenumbers)) - len(wavenumbers)))
    return spectra.to(torch.bfloat16)


def train(model, spectra, bins, batch, steps, lr):
    device = spectra.device
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
    losses = torch.zeros(steps, device=device)
    n_batches = len(spectra) // batch
    for step in range(steps):
        lo = step % n_batches * batch
        clean = spectra[lo:lo + batch]
        dimmed = clean * (0.9 if step % 2 else 0.8)
        with torch.autocast(device.type, torch.bfloat16):
            restored = model(dimmed)
        loss = F.mse_loss(restored, clean, reduction="sum").float() / (batch * bins)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
    return losses.cpu()


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    batch, width, code, steps = (16384, 2048, 1024, 200) if gpu else (16, 32, 8, 6)
    wavenumbers = torch.arange(399.0, 3400.0, device=device)
    gen = torch.Generator(device).manual_seed(8)
    spectra = measured_spectra(4 * batch, wavenumbers, gen, device)
    model = MODELS["bottleneck"](len(wavenumbers), width, code).to(device)
    losses = train(model, spectra, len(wavenumbers), batch, steps, lr=2e-4) * 1000
    print(f"{len(wavenumbers)} bins; loss x 1000: {losses[0].item():.2f} -> {losses[-1].item():.2f}")


if __name__ == "__main__":
    main()
