"""Counts salmon at a weir from sonar tracks: a transformer over tracks, trained with fused attention."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.qkv(self.first(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.second(x))


def main(args):
    torch.manual_seed(20)
    embed = nn.Linear(8, 128)
    net = nn.Sequential(embed, Block(128, 4), Block(128, 4), nn.Linear(128, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for step in range(args.steps):
        tracks = torch.randn(args.weirs, args.pings, 8)
        salmon = (tracks[..., 0] > 0.5).float()
        loss = F.binary_cross_entropy_with_logits(net(tracks).squeeze(-1), salmon)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print(f"loss {loss.item():.4f}")


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4 if TINY else 110)
parser.add_argument("--weirs", type=int, default=2 if TINY else 8)
parser.add_argument("--pings", type=int, default=16 if TINY else 128)
main(parser.parse_args())
