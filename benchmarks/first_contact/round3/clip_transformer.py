"""Action recognition: a transformer over the space-time tubes of a clip."""
import os

import torch
import torch.nn.functional as F
from torch import nn


class TubeAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * self.scale  # flaw: hand-written-attention
        attn = attn.softmax(dim=-1)  # flaw: hand-written-attention
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)  # flaw: hand-written-attention
        return self.proj(x)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.attn = nn.LayerNorm(dim), TubeAttention(dim, heads)
        self.n2, self.mlp = nn.LayerNorm(dim), nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class ClipNet(nn.Module):
    def __init__(self, dim, heads, depth, frames, side, classes):
        super().__init__()
        self.tubes = nn.Conv3d(3, dim, (2, 16, 16), (2, 16, 16))
        tokens = frames // 2 * (side // 16) ** 2
        self.where = nn.Parameter(torch.zeros(1, tokens, dim))
        self.layers = nn.Sequential(*(Layer(dim, heads) for _ in range(depth)))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, clip):
        x = self.tubes(clip).flatten(2).transpose(1, 2) + self.where
        return self.head(self.layers(x).mean(1))


def main(small=os.environ.get("SMALL") == "1"):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    dim, heads, depth, frames, side, batch, steps = (32, 2, 1, 4, 32, 2, 30) if small else (384, 6, 4, 16, 192, 8, 100)
    net = ClipNet(dim, heads, depth, frames, side, 101).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    clips = torch.randn(batch * 4, 3, frames, side, side, device=device)
    actions = torch.randint(0, 101, (batch * 4,), device=device)
    for i in range(steps):
        rows = torch.randint(0, batch * 4, (batch,), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(clips[rows]), actions[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (i + 1) % 50 == 0:
            print(i + 1, loss.item())


if __name__ == "__main__":
    main()
