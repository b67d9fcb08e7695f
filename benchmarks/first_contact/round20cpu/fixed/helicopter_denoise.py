"""Removes rotor noise from cockpit speech; the loss compares deep features of a fixed recogniser."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(17)


def conv_stack(channels, kernel, stride):
    layers = []
    for cin, cout in zip(channels, channels[1:]):
        layers += [nn.Conv1d(cin, cout, kernel, stride=stride, padding=kernel // 2), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers)


class Denoiser(nn.Module):
    """Predicts the noise, which is then subtracted."""

    def __init__(self, width=16):
        super().__init__()
        self.encode = conv_stack([1, width, width], 9, 2)
        self.middle = conv_stack([width, width], 5, 1)
        self.decode = nn.ConvTranspose1d(width, 1, 8, stride=4, padding=2)

    def forward(self, wave):
        return wave - self.decode(self.middle(self.encode(wave)))


class DeepFeatureLoss(nn.Module):
    """L1 between the activations of a recogniser for two waves, plus a little on the waves themselves."""

    def __init__(self, recogniser, wave_weight=0.1):
        super().__init__()
        self.stages = recogniser.eval().requires_grad_(False)
        self.wave_weight = wave_weight

    def features(self, wave):
        maps = []
        for stage in self.stages:
            wave = stage(wave)
            maps.append(wave)
        return maps

    def forward(self, estimate, clean):
        with torch.no_grad():
            wanted = self.features(clean)
        loss = self.wave_weight * F.l1_loss(estimate, clean)
        for got, want in zip(self.features(estimate), wanted):
            loss = loss + F.l1_loss(got, want)
        return loss


def recogniser():
    """Stands in for a checkpoint."""
    return nn.ModuleList([
        conv_stack([1, 32], 15, 2), conv_stack([32, 64, 64], 9, 2), conv_stack([64, 96], 9, 1),
    ])


class NoisySpeech:
    def __init__(self, seconds=0.5, rate=8000, batch=8):
        self.t = torch.arange(int(seconds * rate)) / rate
        self.batch = batch

    def __iter__(self):
        return self

    def __next__(self):
        pitch = 90 + 120 * torch.rand(self.batch, 1)
        envelope = torch.sigmoid(4 * torch.sin(2 * math.pi * (2 + torch.rand(self.batch, 1)) * self.t))
        clean = envelope * torch.sin(2 * math.pi * pitch * self.t)
        blades = torch.sin(2 * math.pi * (18 + 4 * torch.rand(self.batch, 1)) * self.t).relu()
        noisy = clean + blades * torch.randn_like(clean) * 0.5
        return noisy.unsqueeze(1), clean.unsqueeze(1)


class EMA:
    def __init__(self, alpha=0.95):
        self.alpha, self.value = alpha, None

    def update(self, x):
        self.value = x if self.value is None else self.alpha * self.value + (1 - self.alpha) * x


net = Denoiser()
criterion = DeepFeatureLoss(recogniser())
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
smooth = EMA()
for i, (noisy, clean) in zip(range(320), NoisySpeech()):
    estimate = net(noisy)
    loss = criterion(estimate, clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    smooth.update(loss.item())
    if i % 40 == 39:
        print(f"{i + 1:5d} | feature loss {smooth.value:.4f}")
