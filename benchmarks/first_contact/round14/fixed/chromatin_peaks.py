"""A variational autoencoder of open-chromatin peaks in single cells."""
import argparse
import os
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


class PeakLikelihood:
    """Each peak of a cell is open or closed."""

    def __init__(self, scores):
        self.scores = scores

    def surprise(self, peaks):
        return nn.functional.binary_cross_entropy_with_logits(self.scores, peaks)


class ChromatinVAE(nn.Module):
    def __init__(self, peaks, hidden, latent):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(peaks, hidden), nn.GELU(), nn.Linear(hidden, 2 * latent))
        self.decode = nn.Sequential(nn.Linear(latent, hidden), nn.GELU(), nn.Linear(hidden, peaks))

    def forward(self, cells):
        mean, logvar = self.encode(cells).float().chunk(2, -1)
        code = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        divergence = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).mean()
        return self.decode(code), divergence


def run(args, device):
    torch.manual_seed(3)
    vae = ChromatinVAE(args.peaks, args.hidden, 32).to(device)
    opt = torch.optim.AdamW(vae.parameters(), lr=2e-4, fused=True)
    bank = (torch.rand(2 * args.cells, args.peaks, device=device) < 0.04).to(torch.bfloat16)
    for step in range(args.steps):
        begin = (step * 37) % args.cells
        cells = bank[begin:begin + args.cells]
        with torch.autocast(device, torch.bfloat16):
            scores, divergence = vae(cells)
        loss = PeakLikelihood(scores.float()).surprise(cells.float()) + 1e-3 * divergence
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--peaks", type=int, default=256 if TINY else 32768)
    p.add_argument("--hidden", type=int, default=64 if TINY else 1024)
    p.add_argument("--cells", type=int, default=32 if TINY else 4096)
    p.add_argument("--steps", type=int, default=6 if TINY else 400)
    run(p.parse_args(), "cuda" if torch.cuda.is_available() else "cpu")
