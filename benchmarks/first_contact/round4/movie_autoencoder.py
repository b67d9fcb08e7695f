"""Variational autoencoder over users' rating histories (one row per user, one column per film)."""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class RatingVAE(nn.Module):
    def __init__(self, columns, hidden, latent, dropout=0.5):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.enc1 = nn.Linear(columns, hidden)
        self.enc2 = nn.Linear(hidden, 2 * latent)
        self.dec1 = nn.Linear(latent, hidden)
        self.dec2 = nn.Linear(hidden, columns)

    def forward(self, x):
        h = torch.tanh(self.enc1(self.drop(x)))
        mean, log_var = self.enc2(h).float().chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_var)
        return self.dec2(torch.tanh(self.dec1(z))), mean, log_var


def histories(users, films, columns, per_user, seed):
    rng = np.random.default_rng(seed)
    liked = (films * rng.power(0.4, size=(users, per_user))).astype(np.int64) + 1   # 0 is "unknown film"
    return torch.from_numpy(np.minimum(liked, columns - 1))


def main():
    small = os.environ.get("SMALL") == "1"
    films = 300 if small else 26_744
    hidden, latent = (32, 8) if small else (2048, 512)
    users, batch = (256, 16) if small else (40_000, 2048)
    steps, anneal = (30, 20) if small else (80, 60)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(20)

    columns = films + 1  # flaw: misaligned-matmul
    liked = histories(users, films, columns, 64, seed=1).to(device)
    model = RatingVAE(columns, hidden, latent).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    page = torch.zeros(batch, columns, device=device, dtype=torch.bfloat16)

    for step in range(steps):
        rows = liked[torch.randint(users, (batch,), device=device)]
        page.zero_().scatter_(1, rows[:, 1:], 1.0)    # the first film is held out
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits, mean, log_var = model(page)
            picked = F.cross_entropy(logits, rows[:, 0])
        kl = -0.5 * (1 + log_var - mean.square() - log_var.exp()).sum(1).mean()
        loss = picked + min(0.2, step / anneal) * kl
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
