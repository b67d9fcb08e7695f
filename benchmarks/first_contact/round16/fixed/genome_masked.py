"""Masked language model on DNA (6-mers)."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("TINY") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB, HOLE = 4096, 4095


class DivergedError(RuntimeError):
    pass


class Sublayer(nn.Module):
    """Pre-norm residual."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def body(self, x):
        raise NotImplementedError

    def forward(self, x):
        return x + self.body(self.norm(x))


class Attention(Sublayer):
    def __init__(self, width, heads):
        super().__init__(width)
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def body(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class FeedForward(Sublayer):
    def __init__(self, width):
        super().__init__(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def body(self, x):
        return self.down(F.gelu(self.up(x)))


class DnaBert(nn.Module):
    def __init__(self, width, heads, depth):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.stack = nn.Sequential(*[m for _ in range(depth) for m in (Attention(width, heads), FeedForward(width))])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, VOCAB))

    def forward(self, kmers):
        return self.head(self.stack(self.embed(kmers)))


def train(width, heads, depth, rows, length, steps):
    torch.manual_seed(6)
    torch.set_float32_matmul_precision("high")
    model = DnaBert(width, heads, depth).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-4, fused=True)
    ignore = torch.tensor(-100, device=DEVICE)
    for step in range(1, steps + 1):
        kmers = torch.randint(VOCAB - 1, (rows, length), device=DEVICE)
        hidden = torch.rand(rows, length, device=DEVICE) < 0.15
        with torch.autocast(DEVICE, torch.bfloat16):
            scores = model(kmers.masked_fill(hidden, HOLE))
            loss = F.cross_entropy(scores.flatten(0, 1), torch.where(hidden, kmers, ignore).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 or step == steps:
            value = loss.item()
            if value != value:
                raise DivergedError(f"step {step}")
            print(f"{step:5d} {value:.4f}")


train(*((16, 2, 2, 2, 8, 4) if SMALL else (512, 8, 24, 40, 256, 600)))
