"""Outlines of cells in phase-contrast frames (U-shaped network, boundary + interior)."""
import os
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

LITE = os.environ.get("SMALL") == "1"


class DoubleConv(nn.Module):
    """(conv => BN => ReLU) twice"""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),  # flaw: conv-bias-before-norm
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),  # flaw: conv-bias-before-norm
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Outliner(nn.Module):
    def __init__(self, base, levels=3):
        super().__init__()
        ch = [base * 2 ** i for i in range(levels)]
        self.first = DoubleConv(1, ch[0])
        self.downs = nn.ModuleList(DoubleConv(a, b) for a, b in zip(ch, ch[1:]))
        self.ups = nn.ModuleList(DoubleConv(a + b, b) for a, b in zip(ch[:0:-1], ch[-2::-1]))
        self.last = nn.Conv2d(base, 2, 1)
        self.grow = partial(F.interpolate, scale_factor=2, mode="nearest")

    def forward(self, x):
        kept = [self.first(x)]
        for d in self.downs:
            kept.append(d(F.max_pool2d(kept[-1], 2)))
        y = kept.pop()
        for u in self.ups:
            y = u(torch.cat((self.grow(y), kept.pop()), 1))
        return self.last(y)


def synth(n, side, device):
    frames = torch.rand(n, 1, side, side, device=device)
    blobs = F.avg_pool2d(frames, 9, 1, 4)
    inner = (blobs > blobs.mean()).float()
    edge = (F.max_pool2d(inner, 3, 1, 1) - inner).clamp_(0, 1)
    return frames, torch.cat((inner, edge), 1)


def fit(base=8 if LITE else 48, side=32 if LITE else 256, batch=2 if LITE else 16, steps=30 if LITE else 90):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    x, y = synth(batch * 4, side, device)
    y = y.contiguous(memory_format=torch.channels_last)
    net = Outliner(base).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device.type == "cuda")
    weight = torch.tensor([1.0, 4.0], device=device).view(2, 1, 1)
    for step in range(steps):
        part = slice(batch * (step % 4), batch * (step % 4 + 1))
        with torch.autocast(device.type, torch.bfloat16):
            logits = net(x[part])
        loss = F.binary_cross_entropy_with_logits(logits.float(), y[part], pos_weight=weight)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            yield step, loss.item()


if __name__ == "__main__":
    for step, value in fit():
        print(f"{step}: {value:.4f}")
