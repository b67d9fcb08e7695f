import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F

SMALL = os.getenv("SMALL") == "1"


def parse():
    ap = argparse.ArgumentParser("road segmentation")
    ap.add_argument("--size", type=int, default=64 if SMALL else 256)
    ap.add_argument("--batch", type=int, default=2 if SMALL else 24)
    ap.add_argument("--base", type=int, default=8 if SMALL else 64)
    ap.add_argument("--steps", type=int, default=30 if SMALL else 70)
    ap.add_argument("--lr", type=float, default=1e-3)
    return ap.parse_args()


def double(cin, cout):
    layers = []
    for a, b in ((cin, cout), (cout, cout)):
        layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class RoadNet(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.d1, self.d2, self.d3 = double(8, base), double(base, base * 2), double(base * 2, base * 4)
        self.mid = double(base * 4, base * 8)
        self.u3 = nn.ConvTranspose2d(base * 8, base * 4, 2, stride=2)
        self.u2 = nn.ConvTranspose2d(base * 4, base * 2, 2, stride=2)
        self.u1 = nn.ConvTranspose2d(base * 2, base, 2, stride=2)
        self.e3, self.e2, self.e1 = double(base * 8, base * 4), double(base * 4, base * 2), double(base * 2, base)
        self.out = nn.Conv2d(base, 8, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        z = self.mid(F.max_pool2d(c, 2))
        z = self.e3(torch.cat((self.u3(z), c), 1))
        z = self.e2(torch.cat((self.u2(z), b), 1))
        z = self.e1(torch.cat((self.u1(z), a), 1))
        return self.out(z)


def scenes(args, device):
    g = torch.Generator(device=device).manual_seed(0)
    shape = (args.batch, 8, args.size, args.size)
    for _ in range(args.steps):
        img = torch.randn(shape, generator=g, device=device, dtype=torch.bfloat16)
        img = img.contiguous(memory_format=torch.channels_last)
        lab = torch.randint(8, (args.batch, args.size, args.size), generator=g, device=device)
        yield img, lab


args = parse()
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True
net = RoadNet(args.base)
net.to(device, memory_format=torch.channels_last)
optim = torch.optim.AdamW(net.parameters(), lr=args.lr, fused=True)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, args.steps)

for it, (img, lab) in enumerate(scenes(args, device)):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = F.cross_entropy(net(img), lab)
    loss.backward()
    optim.step()
    sched.step()
    optim.zero_grad()
    if it % 25 == 0:
        print("iter", it, "loss", round(loss.item(), 4))
