"""Autoencoder for single-cell gene counts with a zero-inflated negative binomial likelihood."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
GENES = 40 if SMALL else 4096
CELLS = 32 if SMALL else 4096
LATENT = 8 if SMALL else 64
HID = 32 if SMALL else 1024
STEPS = 30 if SMALL else 90


def zinb_nll(x, mean, theta, gate, eps=1e-8):
    soft = F.softplus(-gate)
    log_theta_eps = torch.log(theta + eps)
    log_theta_mean = torch.log(theta + mean + eps)
    lifted = -gate + theta * (log_theta_eps - log_theta_mean)
    zero = F.softplus(lifted) - soft
    nonzero = (
        -soft
        + lifted
        + x * (torch.log(mean + eps) - log_theta_mean)
        + torch.lgamma(x + theta)
        - torch.lgamma(theta)
        - torch.lgamma(x + 1)
    )
    return -torch.where(x < eps, zero, nonzero).mean()


if device == "cuda":
    zinb_nll = torch.compile(zinb_nll)


class CellVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(GENES, HID), nn.LayerNorm(HID), nn.ReLU(), nn.Linear(HID, 2 * LATENT))
        self.dec = nn.Sequential(nn.Linear(LATENT, HID), nn.LayerNorm(HID), nn.ReLU())
        self.mean = nn.Linear(HID, GENES)
        self.gate = nn.Linear(HID, GENES)
        self.log_theta = nn.Parameter(torch.zeros(GENES))

    def forward(self, counts):
        mu, logvar = self.enc(torch.log1p(counts)).chunk(2, -1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        h = self.dec(z)
        kl = 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(-1).mean()
        return F.softmax(self.mean(h), -1), self.gate(h), kl


def synthetic_counts(batches):
    rate = torch.rand(1, 1, GENES, device=device) * 4
    dropout = torch.rand(batches, CELLS, GENES, device=device) < 0.6
    return torch.poisson(rate.expand(batches, CELLS, GENES)).masked_fill_(dropout, 0)


def main():
    torch.manual_seed(9)
    counts = synthetic_counts(3)
    depth = counts.sum(-1, keepdim=True)
    model = CellVAE().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        x, lib = counts[step % 3], depth[step % 3]
        with torch.autocast(device, dtype=torch.bfloat16):
            share, gate, kl = model(x)
        nll = zinb_nll(x, share.float() * lib, model.log_theta.exp(), gate.float())
        loss = nll + 1e-3 * kl.float()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 30 == 0:
            print("step", step, "elbo", -loss.item())


if __name__ == "__main__":
    main()
