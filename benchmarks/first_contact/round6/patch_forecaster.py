"""Decoder-only forecaster over patches of long series."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

if os.environ.get("SMALL"):
    LENGTH, PATCH, DIM, DEPTH, BATCH, STEPS = 128, 8, 32, 1, 2, 30
else:
    LENGTH, PATCH, DIM, DEPTH, BATCH, STEPS = 32768, 16, 512, 6, 8, 80
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class History(nn.Module):
    """Which earlier patches each patch may look at."""

    def __init__(self, n):
        super().__init__()
        self.register_buffer("allowed", torch.ones(n, n, dtype=torch.bool).tril(), persistent=False)

    def arguments(self, n):
        return {"attn_mask": self.allowed[:n, :n]}  # flaw: slow-attention-kernel


class Attention(nn.Module):
    def __init__(self, dim, history, head=32):
        super().__init__()
        self.head, self.history = head, history
        self.inp, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (-1, self.head)).transpose(1, 2) for t in self.inp(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, **self.history.arguments(x.shape[1]))
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim, history):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, history)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        history = History(LENGTH // PATCH)
        self.inp = nn.Linear(PATCH, DIM)
        self.blocks = nn.Sequential(*(Block(DIM, history) for _ in range(DEPTH)))
        self.out = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, PATCH))

    def forward(self, patches):
        return self.out(self.blocks(self.inp(patches)))


def series():
    g = torch.Generator(DEVICE).manual_seed(0)
    t = torch.arange(LENGTH + PATCH, device=DEVICE) / 50
    while True:
        phase = torch.rand(BATCH, 1, device=DEVICE, generator=g) * 6.28
        noise = torch.randn(BATCH, LENGTH + PATCH, device=DEVICE, generator=g)
        yield (torch.sin(t + phase) + 0.2 * noise).unflatten(1, (-1, PATCH))


def main():
    torch.manual_seed(0)
    model = Forecaster().to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    source = series()
    for step in range(STEPS):
        patches = next(source)
        with torch.autocast(DEVICE, torch.bfloat16):
            guess = model(patches[:, :-1])
        loss = F.huber_loss(guess.float(), patches[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
