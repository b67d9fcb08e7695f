"""Ensemble Kalman filter over a 2-D field with a learned forecast model and covariance localisation."""
import math

import torch
from torch import nn

torch.set_float32_matmul_precision("high")
GPU = torch.cuda.is_available()
DEV = "cuda" if GPU else "cpu"


def gaspari_cohn(r):
    """Compactly supported fifth-order correlation, r = distance / half-width."""
    near = (((-0.25 * r + 0.5) * r + 0.625) * r - 5.0 / 3.0) * r * r + 1.0
    safe = r.clamp(min=1e-6)
    far = ((((r / 12.0 - 0.5) * r + 0.625) * r + 5.0 / 3.0) * r - 5.0) * r + 4.0 - 2.0 / (3.0 * safe)
    return torch.where(r < 1.0, near, torch.where(r < 2.0, far, torch.zeros_like(r)))


class Emulator(nn.Module):
    """Residual surrogate of the dynamics, one forecast window per call."""

    def __init__(self, n, width):
        super().__init__()
        self.enc = nn.Linear(n, width)
        self.mid = nn.Linear(width, width)
        self.dec = nn.Linear(width, n)

    def forward(self, x):
        h = torch.tanh(self.enc(x))
        h = torch.tanh(self.mid(h))
        return x + 0.1 * (self.dec(h) - 0.2 * x)


class LocalisedEnKF:
    def __init__(self, grid, obs_index, half_width, obs_std, inflation):
        self.grid = grid
        self.obs_index = obs_index
        self.half_width = half_width
        self.obs_std = obs_std
        self.inflation = inflation
        self.noise_diag = torch.full((len(obs_index),), obs_std**2, device=grid.device)

    def analyse(self, ens, obs):
        n_ens = len(ens)
        obs_grid = self.grid[self.obs_index]
        loc_xy = gaspari_cohn(torch.cdist(self.grid, obs_grid) / self.half_width)  # flaw: constant-rebuilt
        loc_yy = gaspari_cohn(torch.cdist(obs_grid, obs_grid) / self.half_width)  # flaw: constant-rebuilt

        mean = ens.mean(0)
        anom = (ens - mean) * self.inflation
        ens = mean + anom
        y_anom = anom[:, self.obs_index]
        cov_xy = (anom.t() @ y_anom).mul_(loc_xy).div_(n_ens - 1)
        cov_yy = (y_anom.t() @ y_anom).mul_(loc_yy).div_(n_ens - 1)
        cov_yy.diagonal().add_(self.noise_diag)
        chol, _ = torch.linalg.cholesky_ex(cov_yy)

        perturbed = obs + self.obs_std * torch.randn(n_ens, len(obs), device=ens.device)
        innovation = perturbed - ens[:, self.obs_index]
        weights = torch.cholesky_solve(innovation.t(), chol)
        return ens + (cov_xy @ weights).t()


@torch.inference_mode()
def main():
    torch.manual_seed(3)
    side = 160 if GPU else 10
    n = side * side
    n_obs = 2048 if GPU else 16
    n_ens = 192 if GPU else 8
    cycles = 250 if GPU else 5
    axis = torch.arange(side, device=DEV, dtype=torch.float32)
    grid = torch.cartesian_prod(axis, axis)
    obs_index = torch.randperm(n, device=DEV)[:n_obs].sort().values

    model = Emulator(n, 4096 if GPU else 32).to(DEV)
    for p in model.parameters():
        p.mul_(2.0)
    filt = LocalisedEnKF(grid, obs_index, half_width=side / 12, obs_std=0.3, inflation=1.05)

    truth = torch.randn(1, n, device=DEV)
    ens = truth + torch.randn(n_ens, n, device=DEV)
    rmse = torch.zeros(cycles, device=DEV)
    for cycle in range(cycles):
        truth = model(truth)
        ens = model(ens)
        obs = truth[0, obs_index] + filt.obs_std * torch.randn(n_obs, device=DEV)
        ens = filt.analyse(ens, obs)
        rmse[cycle] = (ens.mean(0) - truth[0]).norm() / math.sqrt(n)
        if (cycle + 1) % 50 == 0:
            print(f"cycle {cycle + 1}: rmse {rmse[cycle].item():.4f}")
    print(f"mean rmse {rmse[cycles // 2 :].mean().item():.4f}")


if __name__ == "__main__":
    main()
