"""Diffusion model of sea-surface eddies: velocity-prediction training on synthetic altimetry."""
from dataclasses import dataclass
import math
import os

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Voyage:
    batch: int = 64
    bands: int = 8
    side: int = 128
    width: int = 512
    depth: int = 6
    steps: int = 190
    seed: int = 11


class Corruption:
    """Cosine schedule; mixes a clean field with noise."""

    def __init__(self, device, seed):
        self.device = device
        self.dice = torch.Generator().manual_seed(seed)  # flaw: tensor-made-on-host

    def speckle(self, field):
        return torch.empty(field.shape).normal_(generator=self.dice).to(field)  # flaw: tensor-made-on-host

    def __call__(self, field, when):
        angle = (when * math.pi / 2).view(-1, 1, 1, 1)
        noise = self.speckle(field)
        return angle.cos() * field + angle.sin() * noise, angle.cos() * noise - angle.sin() * field


class Mixer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, width * 3)
        self.proj = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, width * 4), nn.Linear(width * 4, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.a(x)).chunk(3, -1))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.b(x))))


class EddyNet(nn.Module):
    def __init__(self, v: Voyage, cell=8):
        super().__init__()
        self.cell = cell
        self.inlet = nn.Linear(v.bands * cell * cell, v.width)
        self.clock = nn.Linear(1, v.width)
        self.place = nn.Parameter(torch.zeros((v.side // cell) ** 2, v.width))
        self.body = nn.ModuleList(Mixer(v.width, v.width // 64) for _ in range(v.depth))
        self.outlet = nn.Linear(v.width, v.bands * cell * cell)

    def forward(self, x, when):
        h = F.pixel_unshuffle(x, self.cell)
        size = h.shape[-2:]
        h = self.inlet(h.flatten(2).transpose(1, 2)) + self.place + self.clock(when[:, None])[:, None]
        for block in self.body:
            h = block(h)
        return F.pixel_shuffle(self.outlet(h).transpose(1, 2).unflatten(2, size), self.cell)


def main():
    v = Voyage() if os.environ.get("TINY") != "1" else Voyage(2, 2, 16, 64, 1, 4)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(v.seed)
    ocean = torch.randn(v.batch * 4, v.bands, v.side // 8, v.side // 8, device=device)
    ocean = F.interpolate(ocean, scale_factor=8, mode="bilinear")
    corrupt = Corruption(device, v.seed)
    net = EddyNet(v).to(device)
    adam = torch.optim.AdamW(net.parameters(), 2e-4, fused=True)
    total = torch.zeros((), device=device)
    for step in range(v.steps):
        clean = ocean[(step % 4) * v.batch :][: v.batch]
        when = torch.rand(v.batch, device=device)
        noisy, target = corrupt(clean, when)
        with torch.autocast(device.type, torch.bfloat16):
            guess = net(noisy, when)
        loss = F.mse_loss(guess.float(), target)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        total += loss.detach()
    print("velocity error", round(total.item() / v.steps, 4))


if __name__ == "__main__":
    main()
