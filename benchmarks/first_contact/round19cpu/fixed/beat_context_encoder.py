"""Arrhythmia labels for every beat of a Holter excerpt: beats attend to their neighbours within a window."""
import torch
from torch import nn, optim
from torch.nn import functional as F

CFG = dict(beats=384, features=24, width=64, heads=4, layers=2, kinds=5, window=96, batch=3, steps=300, lr=1e-3)


def excerpts(cfg, generator):
    """An endless stream of excerpts: beat features, and labels that depend on rhythm over several beats."""
    mix = torch.randn(cfg["features"], cfg["features"], generator=generator) / 5
    while True:
        interval = 0.8 + 0.05 * torch.randn(cfg["batch"], cfg["beats"], generator=generator)
        early = torch.rand(interval.shape, generator=generator) < 0.08
        interval = torch.where(early, 0.6 * interval, interval)
        pause = early.roll(1, 1)
        shape = torch.randn(cfg["batch"], cfg["beats"], cfg["features"], generator=generator)
        shape[..., 0] = interval
        shape[..., 1] += early * 1.5
        run = early.float().unfold(1, 5, 1).sum(2)
        label = early.long() + 2 * (pause & ~early).long()
        label[:, 4:] = torch.where(run >= 2, torch.full_like(label[:, 4:], 4), label[:, 4:])
        yield shape @ mix + shape, label


class WindowAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.inner = nn.Linear(width, 3 * width)
        self.outer = nn.Linear(width, width)

    def forward(self, x, bias):
        b, t, _ = x.shape
        q, k, v = self.inner(x).view(b, t, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.outer(mixed.transpose(1, 2).reshape(b, t, -1))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = WindowAttention(width, heads)
        self.feed = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, bias):
        x = x + self.attention(self.first(x), bias)
        return x + self.feed(self.second(x))


class BeatEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.enter = nn.Linear(cfg["features"], cfg["width"])
        self.layers = nn.ModuleList(EncoderLayer(cfg["width"], cfg["heads"]) for _ in range(cfg["layers"]))
        self.leave = nn.Linear(cfg["width"], cfg["kinds"])
        at = torch.arange(cfg["beats"])
        far = (at[:, None] - at[None]).abs() > cfg["window"]
        bias = -0.02 * (at[:, None] - at[None]).abs().float()
        self.register_buffer("bias", bias.masked_fill(far, float("-inf")))

    def forward(self, beats):
        x = self.enter(beats)
        for layer in self.layers:
            x = layer(x, self.bias)
        return self.leave(x)


def main(cfg):
    torch.manual_seed(6)
    stream = excerpts(cfg, torch.Generator().manual_seed(6))
    model = BeatEncoder(cfg)
    solver = optim.AdamW(model.parameters(), lr=cfg["lr"], fused=True)
    for step in range(cfg["steps"]):
        beats, label = next(stream)
        logits = model(beats)
        loss = F.cross_entropy(logits.flatten(0, 1), label.flatten())
        solver.zero_grad()
        loss.backward()
        solver.step()
        if step % 60 == 59:
            right = (logits.argmax(2) == label).float().mean()
            print(f"{step + 1:4d}  loss {loss.item():.4f}  beats right {right.item():.3f}", flush=True)


if __name__ == "__main__":
    main(CFG)
