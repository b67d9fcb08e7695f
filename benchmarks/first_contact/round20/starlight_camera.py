"""A denoiser for a camera under starlight. Clean pictures are on the device; what the sensor makes of them is simulated
anew for each batch, so that no frame is ever seen twice."""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"
SIDE, BATCH, PICTURES, STEPS = 512, 24, 240, 1000


def pictures(rng):
    """Stars on a dim sky with a horizon, in linear light."""
    sky = torch.rand(PICTURES, 3, 8, 8, generator=rng, device=device) * 0.05
    light = F.interpolate(sky, size=(SIDE, SIDE), mode="bilinear")
    stars = torch.rand(PICTURES, 1, SIDE, SIDE, generator=rng, device=device)
    light += (stars > 0.999) * stars * 0.8
    return light


def lens(side):
    """Fall-off towards the corners, and the columns' own offsets."""
    axis = torch.linspace(-1, 1, side, device=device)
    radius = (axis[:, None] ** 2 + axis**2) / 2
    columns = torch.sin(axis * 911) * 4e-4
    return (1 - 0.45 * radius)[None, None], columns[None, None, None]


def expose(light, gain, shot, read, falloff, columns):  # flaw: unfused-elementwise
    """Linear light to what the sensor's converter gives: 12 bits, with a soft shoulder below saturation."""
    light = light * falloff
    bloom = light / (1 + 0.5 * light)
    electrons = bloom * 900.0 + 2.0
    electrons = electrons + shot * electrons.sqrt()
    electrons = electrons + 1.7 * read
    volts = electrons * gain / 900.0 + columns * gain
    volts = torch.where(volts > 0.8, 0.8 + 0.2 * torch.tanh((volts - 0.8) / 0.2), volts)
    volts = volts.clamp(-0.02, 1.0)
    steps = torch.round(volts * 4095.0)
    raw = steps / 4095.0
    dark = raw.abs().add(1e-4).pow(0.45) * raw.sign()
    return dark - 0.1 * dark * (1 - dark)


class Frames:
    def __init__(self, seed=77):
        self.rng = torch.Generator(device=device).manual_seed(seed)
        self.light = pictures(self.rng)
        self.falloff, self.columns = lens(SIDE)

    def normal(self):
        return torch.randn(BATCH, 3, SIDE, SIDE, generator=self.rng, device=device)

    def __iter__(self):
        at = 0
        while True:
            clean = self.light[at : at + BATCH]
            at = (at + BATCH) % PICTURES
            gain = torch.rand(BATCH, 1, 1, 1, generator=self.rng, device=device) * 3 + 1
            seen = expose(clean, gain, self.normal(), self.normal(), self.falloff, self.columns)
            yield seen, clean * gain


class Denoiser(nn.Module):
    """Works on 4 x 4 blocks of pixels."""

    def __init__(self, width=96, depth=5):
        super().__init__()
        self.enter = nn.Conv2d(48, width, 3, padding=1)
        self.body = nn.Sequential()
        for _ in range(depth):
            self.body.append(nn.Conv2d(width, width, 3, padding=1))
            self.body.append(nn.ReLU(inplace=True))
        self.leave = nn.Conv2d(width, 48, 3, padding=1)

    def forward(self, seen):
        blocks = F.pixel_unshuffle(seen, 4).to(torch.bfloat16, memory_format=torch.channels_last)
        return self.leave(self.body(self.enter(blocks)))


def train():
    torch.manual_seed(1)
    net = Denoiser().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-4, fused=True)
    began = time.perf_counter()
    for step, (seen, wanted) in enumerate(Frames(), 1):
        with torch.autocast(device, dtype=torch.bfloat16):
            made = net(seen)
        loss = F.l1_loss(made.float(), F.pixel_unshuffle(wanted, 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step}, loss {loss.item():.4f}, {(time.perf_counter() - began) / step * 1e3:.1f} ms a step")
        if step == STEPS:
            break


train()
