"""Traffic forecasting with diffusion convolutions on a dense sensor graph."""
import os
import time
from types import SimpleNamespace

import torch
from torch import nn

full = SimpleNamespace(sensors=8192, history=16, hidden=64, batch=64, layers=3, steps=850, horizon=8)
tiny = SimpleNamespace(sensors=64, history=16, hidden=16, batch=4, layers=2, steps=60, horizon=8)
hp = tiny if os.environ.get("TINY") == "1" else full
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
amp = device.type == "cuda"
torch.manual_seed(9)
torch.set_float32_matmul_precision("high")
work_dtype = torch.bfloat16 if amp else torch.float32


def road_graph(n):
    """Gaussian kernel of the distances between random sensor positions."""
    xy = torch.rand(n, 2, device=device)
    return torch.exp(-torch.cdist(xy, xy).square() * 200)


class DiffusionSupports(nn.Module):
    """Random-walk matrices of one and two hops."""

    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)

    def forward(self):
        walk = self.weights / self.weights.sum(1, keepdim=True)  # flaw: constant-rebuilt
        walk = walk.to(work_dtype)  # flaw: constant-rebuilt
        return walk, walk @ walk  # flaw: constant-rebuilt


class DiffusionConv(nn.Module):
    """x is laid out sensors x (batch * channels), so that a hop is one matrix product."""

    def __init__(self, cin, cout):
        super().__init__()
        self.cin = cin
        self.mix = nn.Linear(3 * cin, cout)

    def forward(self, x, supports):
        n, b, c = x.shape
        flat = x.reshape(n, b * c)
        hops = [flat] + [s @ flat for s in supports]
        return self.mix(torch.cat([h.view(n, b, c) for h in hops], -1))


class Forecaster(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.supports = DiffusionSupports(weights)
        widths = [hp.history] + [hp.hidden] * hp.layers
        self.convs = nn.ModuleList(DiffusionConv(a, b) for a, b in zip(widths, widths[1:]))
        self.readout = nn.Linear(hp.hidden, hp.horizon)

    def forward(self, x):
        supports = self.supports()
        for conv in self.convs:
            x = nn.functional.relu(conv(x, supports), inplace=True)
        return self.readout(x)


class Windows:
    """Sliding windows over one long recording, kept on the device."""

    def __init__(self, length=2048):
        t = torch.arange(length, device=device) / 40
        phase = torch.rand(hp.sensors, 1, device=device) * 6.28
        rec = torch.sin(t + phase) + 0.1 * torch.randn(hp.sensors, length, device=device)
        self.frames = rec.to(work_dtype).unfold(1, hp.history + hp.horizon, 1)

    def sample(self):
        at = torch.randint(self.frames.shape[1], (hp.batch,), device=device)
        return self.frames[:, at].split([hp.history, hp.horizon], -1)


model = Forecaster(road_graph(hp.sensors)).to(device)
for conv in model.convs:
    conv.to(work_dtype)
model.readout.to(work_dtype)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=amp)
windows = Windows()
error_sum = torch.zeros((), device=device)
began = time.perf_counter()
step = 0
while step < hp.steps:
    past, future = windows.sample()
    loss = nn.functional.l1_loss(model(past), future)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    error_sum += loss.detach()
    step += 1
print(f"mean abs error {error_sum.item() / hp.steps:.4f}")
print(f"took {time.perf_counter() - began:.2f} s")
