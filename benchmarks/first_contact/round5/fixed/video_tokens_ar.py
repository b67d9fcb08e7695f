"""Autoregressive model over quantised video tokens (frames flattened in raster order)."""
import os

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.wqkv = nn.Linear(width, 3 * width, bias=False)
        self.wo = nn.Linear(width, width, bias=False)

    def forward(self, x, visible):
        b, t, w = x.shape
        q, k, v = self.wqkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (z.reshape(b, t, self.heads, -1).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.wo(y.transpose(1, 2).reshape(b, t, w))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.net(x)


class TokenModel(nn.Module):
    def __init__(self, codes, length, width, heads, depth):
        super().__init__()
        self.code = nn.Embedding(codes, width)
        self.place = nn.Embedding(length, width)
        self.attn = nn.ModuleList(SelfAttention(width, heads) for _ in range(depth))
        self.ff = nn.ModuleList(FeedForward(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, codes, bias=False)
        order = torch.arange(length)
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("visible", order[:, None] >= order[None, :], persistent=False)

    def forward(self, ids):
        x = self.code(ids) + self.place(self.order)
        for attn, ff in zip(self.attn, self.ff):
            x = ff(attn(x, self.visible))
        return self.out(self.norm(x))


def pack(generator, n, frames, tokens_per_frame, codes, device):
    video = torch.randint(codes, (n, frames * tokens_per_frame + 1), generator=generator, device=device)
    return video[:, :-1], video[:, 1:]


if __name__ == "__main__":
    tiny = os.environ.get("SMALL") == "1"
    codes, frames, per_frame = (64, 4, 8) if tiny else (1024, 8, 256)
    width, heads, depth = (32, 2, 2) if tiny else (1024, 16, 6)
    n, steps = (2, 30) if tiny else (6, 60)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gen = torch.Generator(device=device).manual_seed(6)
    model = TokenModel(codes, frames * per_frame, width, heads, depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
    ids, nxt = pack(gen, n, frames, per_frame, codes, device)
    for step in range(steps):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(ids)
            loss = F.cross_entropy(logits.flatten(0, 1), nxt.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 20 == 0:
            print(f"{step + 1}/{steps}  {loss.item():.3f}")
