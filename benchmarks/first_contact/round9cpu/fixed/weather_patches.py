"""Patch transformer that forecasts a gridded temperature field six hours ahead."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = F.scaled_dot_product_attention(q, k, v, scale=self.scale)
        x = x.transpose(1, 2).reshape(b, n, d)
        return self.proj(x)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchForecaster(nn.Module):
    def __init__(self, grid=(48, 96), patch=3, dim=64, heads=4, depth=2):
        super().__init__()
        self.patch = patch
        self.rows, self.cols = grid[0] // patch, grid[1] // patch
        self.embed = nn.Conv2d(2, dim, patch, stride=patch)
        self.place = nn.Parameter(torch.zeros(1, self.rows * self.cols, dim))
        self.layers = nn.Sequential(*[Layer(dim, heads) for _ in range(depth)])
        self.out = nn.Linear(dim, patch * patch)

    def forward(self, now, before):
        x = self.embed(torch.stack((now, before), 1)).flatten(2).transpose(1, 2) + self.place
        x = self.out(self.layers(x))
        x = x.view(-1, self.rows, self.cols, self.patch, self.patch)
        return now + x.transpose(2, 3).reshape(now.shape)


def synthetic_weather(hours=400):
    lat = torch.linspace(-1.5, 1.5, 48)[:, None]
    lon = torch.linspace(0, 6.28, 97)[:96]
    t = torch.arange(hours)[:, None, None] / 24
    waves = 0.3 * torch.sin(2 * lon + t) * torch.cos(lat * 2)
    return torch.cos(lat) + waves + 0.1 * torch.sin(6.28 * t + lon)


def main():
    torch.manual_seed(0)
    field = synthetic_weather()
    model = PatchForecaster()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    for it in range(70):
        t = torch.randint(6, len(field) - 6, (4,))
        loss = F.mse_loss(model(field[t], field[t - 6]), field[t + 6])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 10 == 0:
            print(f"{it:4d} {loss.item():.5f}")


if __name__ == "__main__":
    main()
