import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F


class Vae(nn.Module):
    """Compresses flattened patches of a scan."""

    def __init__(self, voxels, hidden, latent):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(voxels, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.stats = nn.Linear(hidden, 2 * latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.out = nn.Linear(hidden, voxels)

    def forward(self, x):
        mean, logvar = self.stats(self.enc(x)).float().chunk(2, -1)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
        back = self.out(self.dec(z)).float()
        kl = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).sum(-1)
        return F.mse_loss(back, x.float(), reduction="none").sum(-1), kl


def parse():
    small = bool(os.environ.get("SMALL"))
    p = argparse.ArgumentParser()
    p.add_argument("--voxels", type=int, default=64 if small else 4096)
    p.add_argument("--hidden", type=int, default=16 if small else 4096)
    p.add_argument("--latent", type=int, default=8 if small else 256)
    p.add_argument("--batch", type=int, default=8 if small else 8192)
    p.add_argument("--steps", type=int, default=30 if small else 90)
    p.add_argument("--beta-steps", type=int, default=40)
    return p.parse_args()


def main():
    args = parse()
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(0)
    scans = torch.randn(4, args.batch, args.voxels, device=device).to(torch.bfloat16)
    net = Vae(args.voxels, args.hidden, args.latent).to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    elbo = torch.compile(net, disable=not gpu)
    history = torch.zeros(args.steps, 2, device=device)
    for step in range(args.steps):
        with torch.autocast(device.type, torch.bfloat16):
            error, kl = elbo(scans[step % 4])
        error, kl = error.mean(), kl.mean()
        loss = error + min(1.0, step / args.beta_steps) * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        history[step, 0], history[step, 1] = error.detach(), kl.detach()
    for row in history[9::20].tolist():
        print("error %.2f  kl %.2f" % tuple(row))


if __name__ == "__main__":
    main()
