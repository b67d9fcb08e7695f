"""DeepONet surrogate of a Darcy-type solution operator: branch over sensors, trunk over coordinates."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # flaw: fp32-matmul
LARGE = device.type == "cuda"


@dataclass(frozen=True)
class Settings:
    sensors: int = 1024 if LARGE else 16
    width: int = 1024 if LARGE else 24
    basis: int = 512 if LARGE else 8
    depth: int = 4
    functions: int = 512 if LARGE else 8
    batch: int = 256 if LARGE else 4
    points: int = 32768 if LARGE else 32
    steps: int = 160 if LARGE else 5
    lr: float = 1e-3


class Tower(nn.Module):
    def __init__(self, n_in, width, depth, n_out):
        super().__init__()
        self.first = nn.Linear(n_in, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth - 1))
        self.last = nn.Linear(width, n_out)

    def forward(self, x):
        x = F.gelu(self.first(x))
        for layer in self.hidden:
            x = F.gelu(layer(x))  # flaw: fp32-matmul
        return self.last(x)


class DeepONet(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.branch = Tower(s.sensors, s.width, s.depth, s.basis)
        self.trunk = Tower(8, s.width, s.depth, s.basis)
        self.bias = nn.Parameter(torch.zeros(()))
        self.register_buffer("freqs", 2.0 ** torch.arange(2) * torch.pi)

    def features(self, xy):
        a = (xy.unsqueeze(-1) * self.freqs).flatten(1)
        return torch.cat([a.sin(), a.cos()], dim=1)

    def forward(self, sensors, xy):
        return torch.addmm(self.bias, self.branch(sensors), self.trunk(self.features(xy)).t())


class Field:
    """Random smooth coefficient fields and a cheap analytic stand-in for their solutions."""

    def __init__(self, n, modes=6):
        self.amp = torch.randn(n, modes, modes, device=device) / (1 + torch.arange(modes, device=device)) ** 1.5
        self.k = torch.pi * (1 + torch.arange(modes, device=device))

    def evaluate(self, rows, xy, damp):
        sx = torch.sin(xy[:, :1] * self.k)
        sy = torch.sin(xy[:, 1:] * self.k) / (1 + damp * self.k)
        mixed = (sx.unsqueeze(2) * sy.unsqueeze(1)).flatten(1)
        return self.amp[rows].flatten(1) @ mixed.t()


def train(s):
    torch.manual_seed(0)
    fields = Field(s.functions)
    side = int(s.sensors**0.5)
    axis = torch.linspace(0, 1, side, device=device)
    sensor_xy = torch.cartesian_prod(axis, axis)
    everything = torch.arange(s.functions, device=device)
    sensor_values = fields.evaluate(everything, sensor_xy, 0.0)

    model = DeepONet(s).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=s.lr, fused=LARGE)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, s.lr, total_steps=s.steps)
    for step in range(s.steps):
        rows = torch.randint(s.functions, (s.batch,), device=device)
        xy = torch.rand(s.points, 2, device=device)
        target = fields.evaluate(rows, xy, 0.3)
        loss = F.mse_loss(model(sensor_values[rows], xy), target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        if step % 20 == 0:
            print(f"{step:4d}  mse {loss.item():.3e}")
    return loss.item()


if __name__ == "__main__":
    print("final", train(Settings()))
