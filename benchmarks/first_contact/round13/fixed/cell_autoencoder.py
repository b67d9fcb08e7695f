"""Denoising autoencoder for single-cell counts: the cells stay on the device, one minibatch per step."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn


def options():
    tiny = os.environ.get("TINY") == "1"
    p = argparse.ArgumentParser()
    p.add_argument("--cells", type=int, default=512 if tiny else 65536)
    p.add_argument("--genes-kept", type=int, default=304 if tiny else 15040)
    p.add_argument("--hidden", type=int, default=64 if tiny else 2048)
    p.add_argument("--latent", type=int, default=16 if tiny else 128)
    p.add_argument("--minibatch", type=int, default=64 if tiny else 8192)
    p.add_argument("--epochs", type=int, default=2 if tiny else 70)
    return p.parse_args()


class Autoencoder(nn.Module):
    def __init__(self, genes, hidden, latent):
        super().__init__()
        self.enc_in = nn.Linear(genes, hidden)
        self.enc_mid = nn.Linear(hidden, hidden)
        self.to_latent = nn.Linear(hidden, latent)
        self.dec_in = nn.Linear(latent, hidden)
        self.dec_mid = nn.Linear(hidden, hidden)
        self.dec_out = nn.Linear(hidden, genes)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))

    def forward(self, counts):
        x = F.dropout(counts, 0.2, self.training)
        h = F.silu(self.norms[0](self.enc_in(x)))
        z = self.to_latent(F.silu(self.enc_mid(h)))
        h = F.silu(self.norms[1](self.dec_in(z)))
        rate = self.dec_out(F.silu(self.dec_mid(h)))
        return F.mse_loss(rate, counts)


def simulate(cells, genes, device, dtype):
    """Low-rank log-expression with per-cell depth, the most variable genes first."""
    g = torch.Generator(device=device).manual_seed(17)
    programs = torch.randn(32, genes, device=device, generator=g)
    usage = torch.randn(cells, 32, device=device, generator=g)
    out = torch.empty(cells, genes, device=device, dtype=dtype)
    for lo in range(0, cells, 8192):
        out[lo:lo + 8192] = (usage[lo:lo + 8192] @ programs).mul_(0.2).to(dtype)
    return out


def main():
    o = options()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    cells = simulate(o.cells, o.genes_kept, device, dtype)
    model = Autoencoder(o.genes_kept, o.hidden, o.latent).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=device == "cuda")
    for epoch in range(o.epochs):
        order = torch.randperm(o.cells, device=device)
        running = torch.zeros((), device=device)
        for part in order.split(o.minibatch):
            batch = cells[part]
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                loss = model(batch)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            running += loss.detach()
        if epoch % 10 == 0 or epoch == o.epochs - 1:
            print(f"epoch {epoch:3d}  mse {running.item() / (o.cells // o.minibatch):.4f}")


if __name__ == "__main__":
    main()
