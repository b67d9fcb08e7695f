"""Crop-field segmentation of multispectral tiles with a residual conv net."""
import os
from types import SimpleNamespace as NS

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
cfg = NS(
    tile=16 if tiny else 128, bands=8, classes=16, width=16 if tiny else 64,
    blocks=2 if tiny else 8, batch=2 if tiny else 96, steps=8 if tiny else 200, lr=2e-3,
)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
amp = device.type == "cuda"


class PixelNorm(nn.LayerNorm):
    """LayerNorm over the channels of every pixel."""

    def forward(self, x):
        x = x.permute(0, 2, 3, 1).contiguous()
        with torch.autocast(x.device.type, enabled=False):
            x = F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)
        return x.permute(0, 3, 1, 2)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.before, self.between = PixelNorm(width), PixelNorm(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        y = F.gelu(self.between(self.first(self.before(x))))
        return x + self.second(y)


class Segmenter(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem = nn.Conv2d(c.bands, c.width, 3, padding=1)
        self.body = nn.Sequential(*(Residual(c.width) for _ in range(c.blocks)))
        self.norm = PixelNorm(c.width)
        self.head = nn.Conv2d(c.width, c.classes, 1)

    def forward(self, x):
        return self.head(self.norm(self.body(self.stem(x))))


class Tiles:
    """Endless tiles cut from scenes that stay on the device."""

    def __init__(self, c):
        g = torch.Generator(device).manual_seed(4)
        n = 4 * c.batch
        self.c = c
        self.x = torch.randn(n, c.bands, c.tile, c.tile, generator=g, device=device).to(memory_format=torch.channels_last)
        self.y = (self.x[:, :4] > 0).long().mul(torch.tensor([1, 2, 4, 8], device=device).view(1, 4, 1, 1)).sum(1)

    def __iter__(self):
        i = 0
        while True:
            rows = slice(i, i + self.c.batch)
            yield self.x[rows], self.y[rows]
            i = (i + self.c.batch) % len(self.x)


def fit(c):
    torch.manual_seed(8)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    net = Segmenter(c).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=c.lr, fused=amp)
    curve = []
    for step, (x, y) in enumerate(Tiles(c)):
        if step == c.steps:
            break
        with torch.autocast(device.type, torch.bfloat16, enabled=amp):
            loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        curve.append(loss.detach())
    return torch.stack(curve)


if __name__ == "__main__":
    curve = fit(cfg).cpu()
    print("start %.5f end %.5f" % (curve[0], curve[-1]))
