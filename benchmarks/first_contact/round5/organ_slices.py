"""Multi-organ segmentation of CT slices: residual encoder, light decoder, cross entropy."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn

ORGANS = 8


def conv_bn(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(conv_bn(c, c), nn.Conv2d(c, c, 3, 1, 1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        return F.relu(self.body(x).add_(x), inplace=True)


class OrganNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.enc1 = nn.Sequential(conv_bn(8, c, 2), Res(c))
        self.enc2 = nn.Sequential(conv_bn(c, 2 * c, 2), Res(2 * c), Res(2 * c))
        self.enc3 = nn.Sequential(conv_bn(2 * c, 4 * c, 2), Res(4 * c), Res(4 * c), Res(4 * c))
        self.up2 = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2)
        self.up1 = nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.out = nn.ConvTranspose2d(c, ORGANS, 2, 2)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(a)
        z = self.up2(self.enc3(b)) + b
        return self.out(self.up1(z) + a)


def phantom(args, device):
    """Five adjacent slices and three window settings per sample, generated once on the device."""
    gen = torch.Generator(device=device).manual_seed(77)
    x = torch.randn(args.n, 8, args.size, args.size, generator=gen, device=device, dtype=torch.bfloat16)
    y = torch.randint(ORGANS, (args.n, args.size, args.size), generator=gen, device=device)
    return x.contiguous(memory_format=torch.channels_last), y


def main():
    small = os.environ.get("SMALL") == "1"
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=32 if small else 256)
    ap.add_argument("--n", type=int, default=2 if small else 48)
    ap.add_argument("--width", type=int, default=8 if small else 96)
    ap.add_argument("--steps", type=int, default=30 if small else 70)
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    net = OrganNet(args.width).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    x, y = phantom(args, device)
    ema = torch.zeros((), device=device)
    for step in range(args.steps):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.lerp_(loss.detach(), 0.1)
    print("smoothed loss", ema.item())


if __name__ == "__main__":
    main()
