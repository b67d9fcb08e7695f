"""Variational autoencoder for galaxy spectra (converted from a notebook)."""
# %%
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

torch.manual_seed(31)
torch.autograd.set_detect_anomaly(True)  # flaw: anomaly-detection-on
sweeps = 20

# %% data: continuum plus a few lines at a random redshift
gen = torch.Generator().manual_seed(31)
wave = torch.linspace(0, 1, 256)
z = torch.rand(1920, 1, generator=gen) * 0.2
lines = sum(torch.exp(-((wave - c - z) / 0.01) ** 2) for c in (0.2, 0.35, 0.5, 0.62))
spectra = lines + torch.rand(1920, 1, generator=gen) * wave + 0.05 * torch.randn(1920, 256, generator=gen)


# %% model
class SpectrumVAE(nn.Module):
    def __init__(self, latent=6, hidden=160):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(256, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU())
        self.mu, self.log_sd = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU(),
                                 nn.Linear(hidden, 256))
        self.prior_mu = nn.Buffer(torch.zeros(latent))
        self.prior_sd = nn.Buffer(torch.ones(latent))

    def forward(self, x):
        h = self.enc(x)
        post = Normal(self.mu(h), self.log_sd(h).exp(), validate_args=False)
        code = post.rsample()
        kl = kl_divergence(post, Normal(self.prior_mu, self.prior_sd, validate_args=False)).sum(-1)
        return self.dec(code), kl


vae = SpectrumVAE()
opt = torch.optim.Adam(vae.parameters(), lr=1e-3, fused=True)

# %% training
for sweep in range(sweeps):
    for part in torch.randperm(len(spectra), generator=gen).split(32):
        x = spectra[part]
        recon, kl = vae(x)
        loss = ((recon - x).square().sum(-1) / 0.02 + kl).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    if sweep % 5 == 4:
        print(f"sweep {sweep}: elbo {-loss.item():.3f}")
