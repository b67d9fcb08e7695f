"""A variational autoencoder, wide enough for the device."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, data=4096, hidden=4096, latent=512):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(data, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, data))

    def forward(self, x):
        mean, logvar = self.enc(x).chunk(2, -1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.dec(z), mean, logvar


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    vae = VAE().to(device)
    opt = torch.optim.Adam(vae.parameters(), 1e-4, fused=True)
    x = torch.rand(8192, 4096, device=device)
    for _ in range(350):
        with torch.autocast(device, torch.bfloat16):
            again, mean, logvar = vae(x)
            loss = F.mse_loss(again, x) - 0.001 * (1 + logvar - mean.square() - logvar.exp()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
