"""Learns to fill gaps of rainfall fields; the fields are drawn from a Gaussian process on a regular grid."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True


class RainfallPrior:
    """A Matern 3/2 process on the cells of a square map."""

    def __init__(self, side, scale=0.12, nugget=1e-3, device="cpu"):
        axis = torch.linspace(0, 1, side, device=device)
        self.cells = torch.cartesian_prod(axis, axis)
        self.side, self.scale, self.nugget = side, scale, nugget
        self.factor = torch.linalg.cholesky(self.covariance())

    def covariance(self):
        far = torch.cdist(self.cells, self.cells) * (3 ** 0.5 / self.scale)
        cov = (1 + far) * torch.exp(-far)
        cov.diagonal().add_(self.nugget)
        return cov

    def draw(self, count):
        noise = torch.randn(count, len(self.cells), device=self.cells.device)
        return (noise @ self.factor.T).view(count, 1, self.side, self.side)


class Filler(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.inp = nn.Conv2d(2, width, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(width, width, 3, padding=1))
            for _ in range(depth))
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        x = self.inp(x)
        for part in self.body:
            x = x + part(x)
        return self.out(x)


class Experiment:
    def __init__(self):
        torch.manual_seed(8)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.side, self.batch, self.steps = (12, 2, 3) if TINY else (64, 64, 550)
        self.prior = RainfallPrior(self.side, device=self.device)
        self.net = Filler(*((16, 2) if TINY else (128, 8))).to(self.device, memory_format=torch.channels_last)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=3e-4, fused=True)

    def step(self):
        rain = self.prior.draw(self.batch)
        gauge = (torch.rand_like(rain) < 0.1).float()
        seen = torch.cat([rain * gauge, gauge], 1).to(memory_format=torch.channels_last)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            filled = self.net(seen)
        loss = F.mse_loss(filled.float(), rain)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss

    def __call__(self):
        for number in range(self.steps):
            loss = self.step()
        print(f"after {number + 1} steps: {loss.item():.4f}")


Experiment()()
