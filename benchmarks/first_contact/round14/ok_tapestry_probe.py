"""Trains a head on a frozen image encoder to date fragments of tapestries."""
import os
from contextlib import nullcontext
import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, DEPTH, SIDE, BATCH, STEPS = (32, 1, 32, 4, 5) if TINY else (768, 12, 224, 128, 220)


class Knot(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.a(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.b(x))))


class Loom(nn.Module):
    def __init__(self, width, depth, side, patch=16):
        super().__init__()
        self.cut = nn.Conv2d(3, width, patch, stride=patch)
        self.where = nn.Parameter(torch.randn((side // patch) ** 2, width) * 0.02)
        self.knots = nn.Sequential(*[Knot(width, max(1, width // 64)) for _ in range(depth)])

    def forward(self, images):
        return self.knots(self.cut(images).flatten(2).transpose(1, 2) + self.where).mean(1)


def main():
    torch.manual_seed(21)
    loom = Loom(WIDTH, DEPTH, SIDE).to(DEV, torch.bfloat16).eval().requires_grad_(False)
    head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 512), nn.GELU(), nn.Linear(512, 16)).to(DEV)
    opt = torch.optim.AdamW(head.parameters(), lr=1e-3, fused=True)
    images = torch.randn(3, BATCH, 3, SIDE, SIDE, device=DEV).to(torch.bfloat16)
    century = torch.randint(16, (3, BATCH), device=DEV)
    losses = []
    for step in range(STEPS):
        pick = step % 3
        with torch.no_grad():
            features = loom(images[pick] + 0.3 * torch.randn_like(images[pick]))
        with torch.autocast(DEV, torch.bfloat16) if DEV == "cuda" else nullcontext():
            loss = F.cross_entropy(head(features.float()), century[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    print("loss %.3f -> %.3f" % (losses[0].item(), losses[-1].item()))


if __name__ == "__main__":
    main()
