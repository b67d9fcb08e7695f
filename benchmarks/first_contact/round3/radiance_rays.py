"""Radiance field of one scene: rays, samples along them, and volume rendering."""
import os
import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)
torch.autograd.set_detect_anomaly(True)  # flaw: anomaly-detection-on


def encode(x, bands):
    f = x[..., None] * bands
    return torch.cat([f.sin(), f.cos()], -1).flatten(-2)


class Radiance(nn.Module):
    def __init__(self, width, bands=8):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(bands))
        self.trunk = nn.Sequential(nn.Linear(6 * bands, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Linear(width, 4)

    def forward(self, x):
        y = self.out(self.trunk(encode(x, self.bands))).float()
        return F.softplus(y[..., 0]), y[..., 1:].sigmoid()


def render(field, origin, direction, samples):
    t = torch.linspace(2, 6, samples, device=origin.device)
    sigma, colour = field(origin[:, None] + direction[:, None] * t[:, None])
    depth = sigma * (4 / samples)
    through = torch.exp(-(depth.cumsum(-1) - depth))
    return ((through * (1 - torch.exp(-depth)))[..., None] * colour).sum(1)


rays, samples, width, steps = (16, 4, 16, 30) if SMALL else (4096, 64, 256, 120)
field = Radiance(width).to(dev)
opt = torch.optim.Adam(field.parameters(), lr=5e-4, fused=True)
origins = torch.randn(rays * 8, 3, device=dev)
directions = F.normalize(torch.randn(rays * 8, 3, device=dev), dim=-1)
colours = torch.rand(rays * 8, 3, device=dev)
for i in range(steps):
    pick = torch.randint(rays * 8, (rays,), device=dev)
    with torch.autocast(dev, dtype=torch.bfloat16):
        seen = render(field, origins[pick], directions[pick], samples)
    loss = F.mse_loss(seen.float(), colours[pick])
    opt.zero_grad()
    loss.backward()
    opt.step()
print("psnr", -10 * torch.log10(loss).item())
