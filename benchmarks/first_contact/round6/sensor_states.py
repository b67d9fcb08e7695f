import os

import torch
from torch import nn
import torch.nn.functional as F

small = bool(os.environ.get("SMALL"))
device = "cuda" if torch.cuda.is_available() else "cpu"


class Standardise(nn.Module):
    """Every time step of every sensor window to zero mean and unit variance, then a learned gain."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, self.gain.shape, self.gain, self.shift, self.eps)


class Residual(nn.Module):
    def __init__(self, inner, channels):
        super().__init__()
        self.norm, self.inner = Standardise(channels), inner

    def forward(self, x):
        return x + self.inner(self.norm(x))


class Across(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.qkv, self.out = nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.unflatten(-1, (c // 32, 32)).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def network(sensors, c, depth, states):
    parts = [nn.Linear(sensors, c)]
    for _ in range(depth):
        parts.append(Residual(Across(c), c))
        parts.append(Residual(nn.Sequential(nn.Linear(c, 2 * c), nn.ReLU(), nn.Linear(2 * c, c)), c))
    return nn.Sequential(*parts, Standardise(c), nn.Linear(c, states))


class Windows:
    def __init__(self, count, batch, steps, sensors, states):
        g = torch.Generator(device).manual_seed(0)
        self.x = torch.randn(count, steps, sensors, device=device, generator=g)
        self.y = torch.randint(states, (count, steps), device=device, generator=g)
        self.batch = batch

    def forever(self):
        while True:
            i = torch.randint(len(self.x), (self.batch,), device=device)
            yield self.x[i], self.y[i]


def main(c=256, depth=6, batch=64, steps=1024, updates=80):
    torch.manual_seed(0)
    net = network(24, c, depth, 8).to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    data = Windows(4 * batch, batch, steps, 24, 8).forever()
    for n in range(updates):
        x, y = next(data)
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if n % 20 == 0:
            print(f"{n:4d}  {loss.item():.4f}")


if __name__ == "__main__":
    if small:
        main(c=32, depth=1, batch=2, steps=16, updates=30)
    else:
        main()
