# %% [markdown]
# # Sea floor as an implicit neural representation
# Fourier features (Tancik et al. 2020) and a small MLP; the whole chart is one batch.

# %%
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
np.random.seed(0)
SIDE, BANDS, HIDDEN, STEPS = 96, 128, 64, 450


# %%
def get_mgrid(sidelen, dim=2):
    """Flattened grid of coordinates in [-1, 1]^dim, as in the SIREN notebooks."""
    axes = dim * (torch.linspace(-1, 1, steps=sidelen),)
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).reshape(-1, dim)


def synth_chart(side):
    y, x = np.mgrid[-1:1:side * 1j, -1:1:side * 1j]
    depth = -40 - 30 * x
    for _ in range(25):
        cx, cy, size = np.random.uniform(-1, 1), np.random.uniform(-1, 1), np.random.uniform(0.03, 0.4)
        depth += np.random.normal(0, 12) * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / size**2)
    depth = (depth - depth.mean()) / depth.std()
    return torch.from_numpy(depth.astype(np.float32)).reshape(-1, 1)


# %%
class FourierFeatures(nn.Module):
    def __init__(self, bands, scale=6.0):
        super().__init__()
        self.register_buffer("B", torch.randn(2, bands) * scale)

    def forward(self, xy):
        phase = (2 * math.pi * xy) @ self.B
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class Chart(nn.Module):
    """Depth at each point of a fixed grid."""

    def __init__(self, grid, bands=BANDS, hidden=HIDDEN):
        super().__init__()
        self.register_buffer("grid", grid)
        self.fourier = FourierFeatures(bands)
        self.mlp = nn.Sequential(
            nn.Linear(2 * bands, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, 1),
        )

    def forward(self):
        z = self.fourier(self.grid)  # flaw: constant-rebuilt
        return self.mlp(z)


# %%
def psnr(mse):
    return -10 * math.log10(mse)


chart = synth_chart(SIDE)
model = Chart(get_mgrid(SIDE))
print(model)
opt = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=150, gamma=0.5)

# %%
history = []
for step in range(STEPS):
    noisy = chart + 0.05 * torch.randn_like(chart)
    loss = F.mse_loss(model(), noisy)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    history.append(loss.item())
    if step % 50 == 0:
        print(f"Step {step:4d}, loss {history[-1]:.5f}, psnr {psnr(history[-1]):.2f} dB")

# %%
with torch.no_grad():
    residual = model() - chart
print("final rmse", residual.square().mean().sqrt().item())
