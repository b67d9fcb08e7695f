"""Kernel neural operator on a fixed set of weather stations: predicts the next state of four fields."""
import os
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

small = bool(int(os.environ.get("TINY", "0")))
cfg = SimpleNamespace(
    stations=96 if small else 8192,
    chan=32 if small else 512,
    fields=8,
    batch=2 if small else 4,
    layers=2 if small else 4,
    steps=6 if small else 900,
    radius_km=900.0,
)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(2)


class StationNetwork(nn.Module):
    """Positions of the stations and how strongly each one hears the others."""

    def __init__(self, count, radius_km):
        super().__init__()
        lat = torch.asin(torch.rand(count) * 2 - 1)
        lon = (torch.rand(count) * 2 - 1) * torch.pi
        self.register_buffer("lat", lat)
        self.register_buffer("lon", lon)
        self.radius = radius_km / 6371.0

    def hearing(self):
        dlat = self.lat[:, None] - self.lat[None, :]  # flaw: constant-rebuilt|unfused-elementwise
        dlon = self.lon[:, None] - self.lon[None, :]  # flaw: constant-rebuilt|unfused-elementwise
        cosines = self.lat.cos()[:, None] * self.lat.cos()[None, :]  # flaw: constant-rebuilt|unfused-elementwise
        hav = (dlat / 2).sin() ** 2 + cosines * (dlon / 2).sin() ** 2  # flaw: constant-rebuilt|unfused-elementwise
        angle = 2 * hav.clamp(0, 1).sqrt().asin()  # flaw: constant-rebuilt|unfused-elementwise
        return torch.softmax(-(angle / self.radius) ** 2, dim=-1).to(dtype)  # flaw: constant-rebuilt|unfused-elementwise


class Mixer(nn.Module):
    def __init__(self, chan):
        super().__init__()
        self.norm = nn.LayerNorm(chan)
        self.local = nn.Linear(chan, chan)
        self.remote = nn.Linear(chan, chan)
        self.out = nn.Linear(chan, chan)

    def forward(self, x, hears):
        y = self.norm(x)
        return x + self.out(F.silu(self.local(y) + torch.matmul(hears, self.remote(y))))


class GlobeOperator(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.network = StationNetwork(c.stations, c.radius_km)
        self.lift = nn.Linear(c.fields, c.chan)
        self.mixers = nn.ModuleList(Mixer(c.chan) for _ in range(c.layers))
        self.drop = nn.Linear(c.chan, c.fields)

    def forward(self, state):
        hears = self.network.hearing()  # flaw: constant-rebuilt
        x = self.lift(state)
        for mixer in self.mixers:
            x = mixer(x, hears)
        return state + self.drop(x)


dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
torch.set_float32_matmul_precision("high")
op = GlobeOperator(cfg).to(device)
if not small:
    for m in op.mixers:
        m.compile()
history = torch.randn(32, cfg.stations, cfg.fields, device=device)
history = torch.cumsum(history, 0) * 0.1
opt = torch.optim.Adam(op.parameters(), lr=2e-4, fused=True)
running = torch.zeros((), device=device)
for step in range(cfg.steps):
    at = (step * cfg.batch) % (31 - cfg.batch)
    now, nxt = history[at:at + cfg.batch], history[at + 1:at + 1 + cfg.batch]
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        loss = F.mse_loss(op(now), nxt)
    loss.backward()
    opt.step()
    opt.zero_grad()
    running = torch.lerp(running, loss.detach(), 0.05)
print("running mse %.5f" % running.item())
