"""Fits a signed-distance field, opening the frequency bands of the encoding one after the other."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class BandEncoding(nn.Module):
    """sin/cos features; only the first `open_bands` octaves carry signal."""

    def __init__(self, bands):
        super().__init__()
        self.bands = bands
        self.open_bands = 2  # flaw: recompilation
        self.register_buffer("octave", 3.14159 * 2.0 ** torch.arange(bands), persistent=False)

    def unlock(self, fraction):
        self.open_bands = min(self.bands, 2 + 2 * int(fraction * 4))  # flaw: recompilation

    def forward(self, xyz):
        phase = xyz[:, None, :] * self.octave[:, None]
        phase = torch.stack((phase.sin(), phase.cos()), -1).flatten(2)
        keep = phase[:, :self.open_bands]  # flaw: recompilation
        keep = F.pad(keep, (0, 0, 0, self.bands - self.open_bands))  # flaw: recompilation
        return keep.flatten(1)


class Field(nn.Module):
    def __init__(self, bands, hidden, depth):
        super().__init__()
        self.encode = BandEncoding(bands)
        dims = [6 * bands] + [hidden] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.out = nn.Linear(hidden, 8)

    def forward(self, xyz):
        h = self.encode(xyz)
        for layer in self.layers:
            h = F.silu(layer(h))
        return self.out(h)[:, 0].float()


def torus(p):
    ring = torch.hypot(p[:, 0], p[:, 1]) - 0.6
    return torch.hypot(ring, p[:, 2]) - 0.2 + 0.02 * torch.sin(24 * p[:, 0])


def sample_points(n, gen):
    return 2 * torch.rand(n, 3, generator=gen, device=DEV) - 1


def fit(bands=8, points=2048 if TINY else 524288, hidden=64 if TINY else 512, depth=5, steps=16 if TINY else 160):
    torch.manual_seed(6)
    torch.set_float32_matmul_precision("high")
    gen = torch.Generator(DEV).manual_seed(6)
    field = Field(bands, hidden, depth).to(DEV)
    evaluate = field if TINY else torch.compile(field)
    opt = torch.optim.Adam(field.parameters(), lr=1e-3, fused=DEV.type == "cuda")
    trail = torch.zeros(steps, device=DEV)
    for k in range(steps):
        if k % (steps // 4) == 0:
            field.encode.unlock(k / steps)
        p = sample_points(points, gen)
        with torch.autocast(DEV.type, torch.bfloat16, enabled=DEV.type == "cuda"):
            d = evaluate(p)
        loss = F.smooth_l1_loss(d, torus(p), beta=0.05)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        trail[k] = loss.detach()
    return trail


if __name__ == "__main__":
    trail = fit()
    print(f"first {trail[0].item():.6f} last {trail[-1].item():.6f}")
