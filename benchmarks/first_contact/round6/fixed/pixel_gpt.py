"""Draws small pictures, palette index by palette index."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = bool(os.environ.get("SMALL"))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Mixer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def allocate(self, batch, length):
        w = self.out.weight
        shape = (2, batch, self.heads, length, w.shape[0] // self.heads)
        self.kv = torch.empty(shape, device=w.device, dtype=w.dtype)

    def forward(self, x, at):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        self.kv[0, :, :, at : at + 1], self.kv[1, :, :, at : at + 1] = k, v
        keys, values = self.kv[:, :, :, : at + 1]
        return self.out(F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mix = Mixer(dim, heads)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, at):
        x = x + self.mix(self.n1(x), at)
        return x + self.ff(self.n2(x))


class PixelGPT(nn.Module):
    def __init__(self, dim=512, layers=8, side=32, palette=512):
        super().__init__()
        self.length = side * side
        self.colour = nn.Embedding(palette, dim)
        self.place = nn.Embedding(self.length + 1, dim)
        self.layers = nn.ModuleList(Layer(dim, max(1, dim // 64)) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, palette, bias=False)

    def features(self, colours, at):
        h = self.colour(colours) + self.place.weight[at]
        for layer in self.layers:
            h = layer(h, at)
        return self.norm(h)


class Painter:
    def __init__(self, model, temperature=1.0):
        self.model, self.temperature = model, temperature

    def pick(self, canvas, filled):
        h = self.model.features(canvas[:, filled - 1 : filled], filled - 1)
        odds = (self.model.head(h[:, -1]).float() / self.temperature).softmax(-1)
        return torch.multinomial(odds, 1)

    def paint(self, count, pixels):
        canvas = torch.zeros(count, pixels + 1, dtype=torch.long, device=DEVICE)
        for layer in self.model.layers:
            layer.mix.allocate(count, pixels)
        for filled in range(1, pixels + 1):
            canvas[:, filled : filled + 1] = self.pick(canvas, filled)
        return canvas[:, 1:]


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    if SMALL:
        model, count, pixels = PixelGPT(32, 2, 8, 16), 2, 30
    else:
        model, count, pixels = PixelGPT(), 64, 900
    pictures = Painter(model.to(DEVICE, torch.bfloat16).eval()).paint(count, pixels)
    print(pictures.shape, pictures.float().mean().item())


main()
