"""Microscopy cell encoder, ConvNeXt-like, trained to tell apart perturbations."""
import os
import torch
from torch import nn
import torch.nn.functional as F


class ChannelNorm(nn.Module):
    """Normalise over the channel axis of an image tensor."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        mu = x.mean(1, keepdim=True)  # flaw: hand-written-norm
        var = (x - mu).pow(2).mean(1, keepdim=True)  # flaw: hand-written-norm
        x = (x - mu) / torch.sqrt(var + self.eps)  # flaw: hand-written-norm
        return self.gain[:, None, None] * x + self.shift[:, None, None]  # flaw: hand-written-norm


class Mixer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.space = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.norm = ChannelNorm(c)
        self.wide = nn.Conv2d(c, 4 * c, 1)
        self.narrow = nn.Conv2d(4 * c, c, 1)

    def forward(self, x):
        y = self.norm(self.space(x))
        return x + self.narrow(F.gelu(self.wide(y)))


class CellEncoder(nn.Module):
    def __init__(self, c, n_pert, depth):
        super().__init__()
        self.patch = nn.Conv2d(5, c, 4, 4)
        self.stage1 = nn.Sequential(*[Mixer(c) for _ in range(depth)])
        self.down = nn.Sequential(ChannelNorm(c), nn.Conv2d(c, 2 * c, 2, 2))
        self.stage2 = nn.Sequential(*[Mixer(2 * c) for _ in range(depth)])
        self.head = nn.Linear(2 * c, n_pert)

    def forward(self, x):
        x = self.down(self.stage1(self.patch(x)))
        x = self.stage2(x)
        return self.head(x.mean(dim=(-2, -1)))


def plates(n, side, device, n_pert):
    """Endless stream of (image, perturbation) batches already on the device."""
    img = torch.randn(n, 5, side, side, device=device, dtype=torch.bfloat16)
    img = img.contiguous(memory_format=torch.channels_last)
    pert = torch.randint(n_pert, (n,), device=device)
    while True:
        yield img, pert


if __name__ == "__main__":
    small = os.environ.get("SMALL") == "1"
    side, n, c, depth, steps = (32, 2, 16, 1, 30) if small else (192, 64, 96, 3, 70)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    enc = CellEncoder(c, 64, depth).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(enc.parameters(), lr=4e-4, weight_decay=0.05, fused=True)
    for step, (img, pert) in enumerate(plates(n, side, device, 64), start=1):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(enc(img), pert)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 35 == 0:
            print(step, loss.item())
        if step >= steps:
            break
