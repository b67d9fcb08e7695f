"""Denoising autoencoder for single-cell expression profiles (log-normalised counts)."""
import torch
from torch import nn
import torch.nn.functional as F

USE_GPU = torch.cuda.is_available()
device = torch.device("cuda" if USE_GPU else "cpu")

# 4093 genes pass the variance filter in the atlas
N_GENES = 4093 if USE_GPU else 61
N_CELLS = 60_000 if USE_GPU else 300
HIDDEN = 2048 if USE_GPU else 32
LATENT = 64 if USE_GPU else 8
BATCH = 16_384 if USE_GPU else 32
EPOCHS = 40 if USE_GPU else 1


def synthetic_atlas(cells, genes, programs=16):
    """Counts from a low-rank Poisson model, library-size normalised and log1p-transformed."""
    gen = torch.Generator(device).manual_seed(0)
    usage = torch.rand(cells, programs, device=device, generator=gen).pow_(3)
    loading = torch.rand(programs, genes, device=device, generator=gen).pow_(4)
    counts = torch.poisson(usage @ loading * 2, generator=gen)
    scale = counts.sum(1, keepdim=True).clamp_(min=1).reciprocal_() * 1e4
    profiles = counts.mul_(scale).log1p_().to(torch.bfloat16)
    return F.pad(profiles, (0, -genes % 8))  # the products want multiples of eight


class Autoencoder(nn.Module):
    def __init__(self, genes, hidden, latent):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(genes, hidden),
            nn.LayerNorm(hidden), nn.GELU(), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.LayerNorm(hidden), nn.GELU(),
            nn.Linear(hidden, genes))

    def forward(self, x):
        z = self.encoder(x)
        return self.decoder(z), z


def corrupt(x, rate, gen):
    """Dropout noise: some of the entries are set to zero, as in shallow sequencing."""
    keep = torch.rand(x.shape, device=x.device, generator=gen) >= rate
    return x * keep


class Epochs:
    """Yields shuffled batches; the whole atlas lives on the device."""

    def __init__(self, atlas, batch, epochs):
        self.atlas, self.batch, self.epochs = atlas, batch, epochs
        self.gen = torch.Generator(atlas.device).manual_seed(7)

    def __iter__(self):
        for epoch in range(self.epochs):
            order = torch.randperm(len(self.atlas), device=self.atlas.device, generator=self.gen)
            for lo in range(0, len(order) - self.batch + 1, self.batch):
                yield epoch, self.atlas[order[lo:lo + self.batch]]


def step_loss(model, clean, gen):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        recon, z = model(corrupt(clean, 0.2, gen))
    fit = F.mse_loss(recon, clean) * (clean.shape[1] / N_GENES)
    return fit, z.float().pow(2).mean()


def main():
    torch.manual_seed(0)
    atlas = synthetic_atlas(N_CELLS, N_GENES)
    model = Autoencoder(atlas.shape[1], HIDDEN, LATENT).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * (N_CELLS // BATCH))
    noise = torch.Generator(device).manual_seed(11)
    per_epoch = torch.zeros(EPOCHS, device=device)
    batches = N_CELLS // BATCH
    for epoch, clean in Epochs(atlas, BATCH, EPOCHS):
        fit, size = step_loss(model, clean, noise)
        loss = fit + 1e-3 * size
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        per_epoch[epoch] += fit.detach() / batches
    curve = per_epoch.tolist()
    print(f"{N_CELLS} cells, {N_GENES} genes")
    print(f"reconstruction error: first epoch {curve[0]:.3f}, last epoch {curve[-1]:.3f}")


if __name__ == "__main__":
    main()
