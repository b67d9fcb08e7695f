# %% Forecast of a hive's weight: a small causal transformer over hourly readings
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

hparams = dict(width=64, heads=4, layers=3, window=96, sensors=6, batch=16, steps=312, lr=1e-3, warm=40, seed=19)


# %% data
def hive(hours, sensors, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(hours) / 24
    day = torch.sin(2 * math.pi * t[:, None] + torch.rand(sensors, generator=g) * 6.28)
    weather = torch.randn(hours, 1, generator=g).cumsum(0) * 0.05
    readings = day + weather + 0.1 * torch.randn(hours, sensors, generator=g)
    weight = (0.02 * day[:, 0].clamp_min(0) - 0.005).cumsum(0) + 0.1 * torch.tanh(weather[:, 0])
    return readings, torch.diff(weight, append=weight[-1:]) * 50


def windows(readings, change, length, batch, seed):
    g = torch.Generator().manual_seed(seed)
    x = readings.unfold(0, length, 1).transpose(1, 2)
    y = change.unfold(0, length, 1)
    while True:
        at = torch.randint(len(x), (batch,), generator=g)
        yield x[at], y[at]


# %% model
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.between = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))


class Forecast(nn.Module):
    def __init__(self, sensors, width, heads, layers, window):
        super().__init__()
        self.enter = nn.Linear(sensors, width)
        self.place = nn.Parameter(torch.randn(window, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.leave = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, x):
        return self.leave(self.layers(self.enter(x) + self.place)).squeeze(-1)


# %% training
def train(sensors, width, heads, layers, window, batch, steps, lr, warm, seed):
    torch.manual_seed(seed)
    model = Forecast(sensors, width, heads, layers, window)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=lr, fused=True)
    schedule = LambdaLR(optimizer, lambda s: min((s + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * s / steps)))
    mean = torch.zeros(())
    source = windows(*hive(12000, sensors, seed), window, batch, seed)
    for step in range(1, steps + 1):
        x, y = next(source)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        schedule.step()
        mean.lerp_(loss.detach(), 0.05)
        if step % 52 == 0:
            print(f"{step:4d} {mean.item():.5f}", flush=True)


if __name__ == "__main__":
    train(**hparams)
