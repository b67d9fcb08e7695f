"""Greedy decoding with a small transformer that keeps the keys and values it has seen."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.length = heads, length
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def start(self, batch):
        size = self.out.in_features // self.heads
        self.keys = torch.empty(batch, self.heads, self.length, size)
        self.values = torch.empty(batch, self.heads, self.length, size)

    def forward(self, x, position):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        end = position + t
        self.keys[:, :, position:end] = k
        self.values[:, :, position:end] = v
        y = F.scaled_dot_product_attention(
            q, self.keys[:, :, :end], self.values[:, :, :end], is_causal=t > 1
        )
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x))


class Writer(nn.Module):
    def __init__(self, vocab=4000, width=256, heads=4, depth=4, length=256):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, length) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, position):
        x = self.tokens(ids) + self.positions.weight[position : position + ids.shape[1]]
        for block in self.blocks:
            x = block(x, position)
        return self.norm(x[:, -1]) @ self.tokens.weight.T

    def write(self, prompt, count):
        for block in self.blocks:
            block.start(len(prompt))
        story = torch.empty(len(prompt), count, dtype=torch.long)
        ids, position = prompt, 0
        for i in range(count):
            chosen = self(ids, position).argmax(-1)
            story[:, i] = chosen
            position += ids.shape[1]
            ids = chosen[:, None]
        return story


def main():
    torch.manual_seed(0)
    writer = Writer().eval()
    with torch.inference_mode():
        for number in range(3):
            prompt = torch.randint(4000, (32, 16))
            story = writer.write(prompt, count=200)
            print(f"story {number}: {story[0, :8].tolist()} ... {story.unique().numel()} words")


if __name__ == "__main__":
    main()
