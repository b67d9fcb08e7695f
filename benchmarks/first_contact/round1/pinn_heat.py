"""A network learns temperatures that a NumPy formula prescribes."""
import numpy as np
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
POINTS = 1 << 18


def prescribed(coords):
    x, t = coords.T
    rows = [np.sin(k * np.pi * x) * np.exp(-k * t) for k in range(1, 65)]
    return np.stack(rows, 1)


def setup():
    coords = np.random.default_rng(0).random((POINTS, 2))
    inputs = torch.from_numpy(coords).float().to(device)
    wanted = torch.from_numpy(prescribed(coords)).to(device)  # flaw: float64-on-device
    return inputs, wanted


class HeatNet(nn.Module):
    def __init__(self, w=256):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, w), nn.Tanh(), nn.Linear(w, w), nn.Tanh(), nn.Linear(w, w), nn.Tanh(), nn.Linear(w, 64))

    def forward(self, c):
        return self.net(c)


inputs, wanted = setup()
net = HeatNet().to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
for step in range(400):
    with torch.autocast(device, dtype=torch.bfloat16):
        guess = net(inputs)
    residual = guess.float() - wanted  # flaw: float64-on-device
    loss = residual.square().mean() + 0.1 * residual.abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
