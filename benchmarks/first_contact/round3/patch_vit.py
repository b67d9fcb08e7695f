import os
import torch
from torch import nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.a, self.n2 = nn.LayerNorm(dim), Attention(dim, heads), nn.LayerNorm(dim)
        self.m = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.m(self.n2(x))


class ViT(nn.Module):
    def __init__(self, dim, heads, depth, patch, side):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.where = nn.Parameter(torch.randn(1, (side // patch) ** 2, dim) * 0.02)
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(depth)))
        self.head = nn.Linear(dim, 1000)

    def forward(self, x):
        x = F.pixel_unshuffle(x, self.patch).flatten(2).transpose(1, 2)
        return self.head(self.blocks(self.embed(x) + self.where).mean(1))


if __name__ == "__main__":
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    dim, heads, depth, side, batch, steps = (16, 2, 1, 32, 2, 30) if small else (768, 12, 8, 224, 64, 70)
    net = ViT(dim, heads, depth, 16, side).to(dev)
    opt = torch.optim.AdamW(net.parameters(), 3e-4, weight_decay=0.1, fused=True)
    images = torch.rand(batch * 2, 3, side, side, device=dev)
    labels = torch.randint(1000, (batch * 2,), device=dev)
    total = torch.zeros((), device=dev)
    for i in range(steps):
        k = slice(i % 2 * batch, (i % 2 + 1) * batch)
        with torch.autocast(dev, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(images[k]), labels[k])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
    print("mean", total.item() / steps)
