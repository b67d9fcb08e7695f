"""Random Fourier features of coordinates, then a regression net on top."""
import numpy as np
import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class FourierFeatures(nn.Module):
    def __init__(self, dim, features, scale=3.0, seed=0):
        super().__init__()
        rng = np.random.RandomState(seed)
        self.register_buffer("freq", torch.from_numpy(rng.normal(0, scale, (dim, features))))  # flaw: float64-on-device

    def forward(self, x):
        angle = x.to(self.freq.dtype) @ self.freq  # flaw: float64-on-device
        return torch.cat([angle.sin(), angle.cos()], -1)  # flaw: float64-on-device


class Field(nn.Module):
    def __init__(self, dim=128, features=512, width=1536):
        super().__init__()
        self.embed = FourierFeatures(dim, features)
        self.net = nn.Sequential(
            nn.Linear(2 * features, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, 16))

    def forward(self, x):
        z = self.embed(x).float()
        with torch.autocast(device, dtype=torch.bfloat16):
            return self.net(z)


field = Field().to(device)
optim = torch.optim.Adam(field.parameters(), lr=1e-3, fused=True)
batch = 32768
points = torch.rand(8 * batch, 128, device=device)
values = torch.randn(8 * batch, 16, device=device)

for step in range(400):
    pick = torch.randint(0, points.shape[0], (batch,), device=device)
    loss = nn.functional.mse_loss(field(points[pick]).float(), values[pick])
    optim.zero_grad(set_to_none=True)
    loss.backward()
    optim.step()
    if step % 100 == 0:
        print(step, loss.item())
