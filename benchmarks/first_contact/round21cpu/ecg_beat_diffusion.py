"""Denoising diffusion for single ECG beats (1-D U-Net, epsilon prediction)."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class GroupScale(nn.Module):
    def __init__(self, channels, groups=8, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.gain = nn.Parameter(torch.ones(channels, 1))
        self.shift = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, x):
        grouped = x.reshape(x.shape[0], self.groups, -1)  # flaw: hand-written-norm
        centred = grouped - grouped.mean(dim=2, keepdim=True)  # flaw: hand-written-norm
        power = centred.square().mean(dim=2, keepdim=True)  # flaw: hand-written-norm
        x = (centred * torch.rsqrt(power + self.eps)).reshape(x.shape)  # flaw: hand-written-norm
        return x * self.gain + self.shift  # flaw: hand-written-norm


class ResBlock(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.first = nn.Sequential(GroupScale(inputs), nn.SiLU(), nn.Conv1d(inputs, outputs, 3, padding=1))
        self.time = nn.Linear(time, outputs)
        self.second = nn.Sequential(GroupScale(outputs), nn.SiLU(), nn.Conv1d(outputs, outputs, 3, padding=1))
        self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.first(x) + self.time(t)[:, :, None]
        return self.skip(x) + self.second(h)


class BeatUNet(nn.Module):
    def __init__(self, width=32, time=64, levels=1000):
        super().__init__()
        position = torch.arange(levels)[:, None]
        rate = torch.exp(torch.arange(0, time, 2) * (-math.log(10_000) / time))
        self.register_buffer("clock", torch.cat([torch.sin(position * rate), torch.cos(position * rate)], 1))
        self.time = nn.Sequential(nn.Linear(time, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv1d(1, width, 7, padding=3)
        self.down1 = ResBlock(width, width, time)
        self.pool1 = nn.Conv1d(width, 2 * width, 4, stride=2, padding=1)
        self.down2 = ResBlock(2 * width, 2 * width, time)
        self.pool2 = nn.Conv1d(2 * width, 2 * width, 4, stride=2, padding=1)
        self.middle = ResBlock(2 * width, 2 * width, time)
        self.up2 = ResBlock(4 * width, width, time)
        self.up1 = ResBlock(2 * width, width, time)
        self.leave = nn.Conv1d(width, 1, 3, padding=1)

    def forward(self, x, level):
        t = self.time(self.clock[level])
        a = self.down1(self.enter(x), t)
        b = self.down2(self.pool1(a), t)
        c = self.middle(self.pool2(b), t)
        c = self.up2(torch.cat([F.interpolate(c, scale_factor=2), b], dim=1), t)
        c = self.up1(torch.cat([F.interpolate(c, scale_factor=2), a], dim=1), t)
        return self.leave(c)


class Diffusion:
    def __init__(self, levels=1000):
        angle = (torch.arange(levels) + 1) / (levels + 1) * math.pi / 2
        self.keep, self.noise = angle.cos()[:, None, None], angle.sin()[:, None, None]
        self.levels = levels

    def loss(self, model, clean, generator):
        level = torch.randint(self.levels, (len(clean),), generator=generator)
        epsilon = torch.randn(clean.shape, generator=generator)
        noisy = self.keep[level] * clean + self.noise[level] * epsilon
        return F.mse_loss(model(noisy, level), epsilon)


def beats(count, length, g):
    t = torch.linspace(-0.5, 0.5, length)
    centre = torch.tensor([-0.22, -0.04, 0.0, 0.035, 0.25])
    height = torch.tensor([0.15, -0.12, 1.0, -0.25, 0.3])
    width = torch.tensor([0.025, 0.01, 0.011, 0.012, 0.045])
    wobble = 1 + 0.2 * torch.randn(3, count, 5, generator=g)
    bumps = torch.exp(-(((t - (centre * wobble[0])[..., None]) / (width * wobble[1])[..., None]) ** 2) / 2)
    return ((height * wobble[2])[..., None] * bumps).sum(1)[:, None]


def main():
    torch.manual_seed(60)
    g = torch.Generator().manual_seed(60)
    data = beats(4000, 256, g)
    model, process = BeatUNet(), Diffusion()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, fused=True)
    running = torch.zeros(())
    for step in range(1, 631):
        loss = process.loss(model, data[torch.randint(len(data), (16,), generator=g)], g)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 35 == 0:
            print(f"step {step}, noise error {running.item() / 35:.4f}", flush=True)
            running.zero_()


if __name__ == "__main__":
    main()
