"""Scores a spectral surrogate by rolling it out from several analysis times."""

import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F


class SpectralLayer(nn.Module):
    def __init__(self, ch, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(ch, ch, modes, modes, dtype=torch.cfloat) / ch)
        self.mix = nn.Conv2d(ch, ch, 1)

    def forward(self, x):
        m = self.modes
        spec = torch.fft.rfft2(x, norm="ortho")
        out = torch.zeros_like(spec)
        out[..., :m, :m] = torch.einsum("bixy,ioxy->boxy", spec[..., :m, :m], self.weight)
        return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:], norm="ortho") + self.mix(x))


class Surrogate(nn.Module):
    def __init__(self, fields, ch, modes, depth):
        super().__init__()
        self.lift = nn.Conv2d(fields, ch, 1)
        self.layers = nn.Sequential(*(SpectralLayer(ch, modes) for _ in range(depth)))
        self.drop = nn.Conv2d(ch, fields, 1)

    def forward(self, state):
        return state + 0.1 * self.drop(self.layers(self.lift(state)))


def analysis(index, args, device):
    g = torch.Generator(device=device).manual_seed(index)
    shape = (args.members, args.fields, args.side, args.side)
    return torch.randn(shape, device=device, generator=g), torch.randn(shape, device=device, generator=g)


class Scorecard:
    def __init__(self, leads, device):
        self.rmse = torch.zeros(leads, device=device)
        self.spread = torch.zeros(leads, device=device)
        self.count = 0

    def enter(self, lead, forecast, truth):
        forecast = forecast.detach()
        self.rmse[lead] += (forecast.mean(0) - truth).square().mean().sqrt()
        self.spread[lead] += forecast.std(0).mean()

    def lines(self):
        for lead in range(0, len(self.rmse), 5):
            yield f"lead {lead:2d}  rmse {self.rmse[lead] / self.count:.3f}  spread {self.spread[lead] / self.count:.3f}"


@torch.no_grad()
def forecast_from(model, start, truth, card, leads):
    state, middle = start, truth.mean(0)
    for lead in range(leads):
        state = model(state)
        card.enter(lead, state, middle)
    card.count += 1
    return state


def verify(model, args, device):
    model.eval()
    card = Scorecard(args.leads, device)
    for index in range(args.starts):
        start, truth = analysis(index, args, device)
        forecast_from(model, start, truth, card, args.leads)
    return card


def parse():
    small = bool(os.environ.get("SMALL"))
    p = argparse.ArgumentParser()
    p.add_argument("--starts", type=int, default=30 if small else 100)
    p.add_argument("--leads", type=int, default=3 if small else 12)
    p.add_argument("--members", type=int, default=2 if small else 6)
    p.add_argument("--fields", type=int, default=4)
    p.add_argument("--side", type=int, default=16 if small else 64)
    p.add_argument("--channels", type=int, default=8 if small else 48)
    p.add_argument("--modes", type=int, default=4 if small else 16)
    return p.parse_args()


if __name__ == "__main__":
    args = parse()
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Surrogate(args.fields, args.channels, args.modes, depth=4).to(device)
    print("\n".join(verify(model, args, device).lines()))
