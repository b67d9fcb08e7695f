"""Wear of gearboxes from vibration: an MLP mixer over short spectra."""
import argparse
import os
import torch
from torch import nn
import torch.nn.functional as F


def centred(x, gain, shift, eps=1e-5):
    spread, middle = torch.var_mean(x, dim=-1, correction=0, keepdim=True)  # flaw: hand-written-norm
    return torch.addcmul(shift, (x - middle) * (spread + eps).rsqrt(), gain)  # flaw: hand-written-norm


class Affine(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))
        self.shift = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return centred(x, self.gain, self.shift)


class MixerStage(nn.Module):
    def __init__(self, places, size):
        super().__init__()
        self.before = Affine(size)
        self.across = nn.Linear(places, places)
        self.after = Affine(size)
        self.up = nn.Linear(size, size)

    def forward(self, x):
        x = x + self.across(self.before(x).transpose(1, 2)).transpose(1, 2)
        return x + self.up(self.after(x)).relu()


class WearNet(nn.Module):
    def __init__(self, places, size, depth):
        super().__init__()
        self.start = nn.Linear(8, size)
        self.stages = nn.Sequential(*[MixerStage(places, size) for _ in range(depth)])
        self.end = nn.Linear(size, 3)

    def forward(self, spectra):
        return self.end(self.stages(self.start(spectra)).mean(1))


def arguments():
    tiny = bool(os.environ.get("TINY"))
    parser = argparse.ArgumentParser()
    parser.add_argument("--gearboxes", type=int, default=4 if tiny else 96)
    parser.add_argument("--places", type=int, default=16 if tiny else 64)
    parser.add_argument("--size", type=int, default=32 if tiny else 64)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3 if tiny else 140)
    return parser.parse_args()


def main():
    a = arguments()
    torch.manual_seed(0)
    net = WearNet(a.places, a.size, a.depth)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for r in range(a.rounds):
        spectra = torch.randn(a.gearboxes, a.places, 8)
        wear = (spectra[:, :, 0].mean(1) > 0).long() + (spectra[:, :, 1].mean(1) > 0).long()
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(spectra), wear)
        loss.backward()
        opt.step()
        if r % 25 == 0 or r == a.rounds - 1:
            print(r, f"{loss.item():.4f}")


main()
