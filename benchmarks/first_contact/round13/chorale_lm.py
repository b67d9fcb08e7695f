"""Decoder-only language model on symbolic music, one compiled block shared by all layers."""
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class MusicConfig:
    vocab: int = 8192
    dim: int = 1024
    heads: int = 8
    layers: int = 8
    context: int = 1024
    batch: int = 32
    steps: int = 120
    corpus: int = 4_000_000
    lr: float = 3e-4

    @classmethod
    def from_env(cls):
        if os.environ.get("TINY") == "1":
            return cls(vocab=128, dim=64, heads=1, layers=1, context=32, batch=4, steps=60, corpus=20_000)
        return cls()


class MusicBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.pre_attention = nn.RMSNorm(c.dim)
        self.pre_mlp = nn.RMSNorm(c.dim)
        self.qkv = nn.Linear(c.dim, 3 * c.dim, bias=False)
        self.proj = nn.Linear(c.dim, c.dim, bias=False)
        self.gate_up = nn.Linear(c.dim, 2 * 2816 if c.dim > 64 else 256, bias=False)
        self.down = nn.Linear(self.gate_up.out_features // 2, c.dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.pre_attention(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        gate, up = self.gate_up(self.pre_mlp(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Readout(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.RMSNorm(c.dim)
        self.head = nn.Linear(c.dim, c.vocab, bias=False)

    def forward(self, x, following):
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), following.flatten())


class MusicModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.notes = nn.Embedding(c.vocab, c.dim)
        self.beats = nn.Parameter(torch.randn(c.context, c.dim) * 0.02)
        self.blocks = nn.ModuleList(MusicBlock(c) for _ in range(c.layers))
        self.readout = Readout(c)

    def forward(self, ids, following):
        x = self.notes(ids) + self.beats
        for block in self.blocks:
            x = block(x)
        return self.readout(x, following)


class Corpus:
    """The whole corpus stays on the device."""

    def __init__(self, c, device):
        g = torch.Generator(device=device).manual_seed(3)
        walk = torch.randint(-3, 4, (c.corpus,), device=device, generator=g).cumsum(0)
        self.tokens = walk.remainder(c.vocab)
        self.window = torch.arange(c.context + 1, device=device)
        self.limit, self.batch, self.gen = c.corpus - c.context - 1, c.batch, g

    def draw(self):
        at = torch.randint(self.limit, (self.batch, 1), device=self.tokens.device, generator=self.gen)
        block = self.tokens[at + self.window]
        return block[:, :-1], block[:, 1:].contiguous()


def main():
    c = MusicConfig.from_env()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = MusicModel(c).to(device)
    if gpu:
        for part in (*model.blocks, model.readout):
            part.compile(dynamic=False)
    opt = torch.optim.AdamW(model.parameters(), lr=c.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=gpu)
    corpus = Corpus(c, device)
    curve = torch.zeros(c.steps, device=device)
    t0 = time.perf_counter()
    for step in range(c.steps):
        ids, following = corpus.draw()
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            loss = model(ids, following)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        curve[step] = loss.detach()
    first, last = curve[[0, -1]].tolist()
    print(f"nll {first:.4f} -> {last:.4f}  {time.perf_counter() - t0:.1f} s")


if __name__ == "__main__":
    main()
