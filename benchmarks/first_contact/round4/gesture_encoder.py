"""Gesture recognition from short clips with space-time attention."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Attend(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        *lead, n, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(-1, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(1, 2).reshape(*lead, n, d))


class SpaceTime(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.space, self.time = Attend(dim, heads), Attend(dim, heads)
        self.feed = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):  # batch, time, place, channel
        x = self.space(x)
        x = self.time(x.transpose(1, 2)).transpose(1, 2)
        return x + self.feed(x)


class GestureNet(nn.Module):
    def __init__(self, frames, places, patch_dim, dim, heads, depth, classes):
        super().__init__()
        self.embed = nn.Linear(patch_dim, dim)
        self.pos_t = nn.Parameter(torch.zeros(frames, 1, dim))
        self.pos_s = nn.Parameter(torch.zeros(1, places, dim))
        self.layers = nn.ModuleList([SpaceTime(dim, heads) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, clip):
        x = self.embed(clip) + self.pos_t + self.pos_s
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)  # flaw: needless-checkpointing
        return self.head(x.mean((1, 2)))


def get_settings():
    if os.environ.get("SMALL", "") == "1":
        return dict(frames=4, places=4, patch_dim=48, dim=32, heads=2, depth=2, classes=8), 2, 30
    return dict(frames=8, places=64, patch_dim=768, dim=512, heads=8, depth=6, classes=32), 32, 70


def main():
    shape, batch, steps = get_settings()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = GestureNet(**shape).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, weight_decay=0.05, fused=device.type == "cuda")
    clips = torch.randn(batch * 4, shape["frames"], shape["places"], shape["patch_dim"], device=device)
    kinds = torch.randint(shape["classes"], (batch * 4,), device=device)
    for step in range(steps):
        pick = torch.randint(len(clips), (batch,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(clips[pick]), kinds[pick])
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
        opt.step()
        if step % 20 == 0:
            print(f"{step:3d} {loss.item():.4f}")


if __name__ == "__main__":
    main()
