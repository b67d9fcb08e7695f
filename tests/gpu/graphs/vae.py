"""A variational autoencoder on vectors; compiled with CUDA graphs, its loss read once an epoch."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_float32_matmul_precision("high")
INPUT, HIDDEN, LATENT = 784, 8192, 64


class Spectra(Dataset):
    def __init__(self):
        self.values = torch.rand(16384, INPUT)

    def __len__(self):
        return 2_000_000

    def __getitems__(self, indices):
        return self.values[torch.tensor(indices) % len(self.values)]

    @staticmethod
    def collate(rows):
        return rows


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = self.tower(INPUT, 2 * LATENT)
        self.decoder = self.tower(LATENT, INPUT)

    @staticmethod
    def tower(inside, outside):
        first, second = nn.Linear(inside, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        return nn.Sequential(first, nn.SiLU(), second, nn.SiLU(), nn.Linear(HIDDEN, outside))

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, -1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1)
        return F.mse_loss(self.decoder(z), x, reduction="none").sum(-1).mean() + divergence.mean()


def epoch(model, loader, optimizer):
    total = torch.zeros((), device="cuda")
    for batch in loader:
        batch = batch.cuda(non_blocking=True)
        torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        total += loss.detach()
    return total.item() / len(loader)


if __name__ == "__main__":
    loader = DataLoader(
        Spectra(),
        batch_size=4096,
        shuffle=True,
        num_workers=8,
        pin_memory=True,
        collate_fn=Spectra.collate,
        persistent_workers=True,
        drop_last=True,
    )
    vae = VAE().cuda()
    fit = torch.compile(vae, mode="reduce-overhead")
    adam = torch.optim.Adam(vae.parameters(), lr=1e-3, fused=True)
    for number in range(10):
        print(number, epoch(fit, loader, adam))
