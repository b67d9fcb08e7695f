"""Masked-base pretraining of a DNA encoder whose positions enter as linear distance penalties."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WIDTH, HEADS, DEPTH, SPAN, BATCH, STEPS = (32, 2, 2, 64, 2, 4) if TINY else (512, 8, 6, 2048, 8, 260)


def distance_penalty(heads, span):
    slopes = torch.tensor([2.0 ** (-8.0 * (h + 1) / heads) for h in range(heads)])
    at = torch.arange(span)
    return -slopes[:, None, None] * (at[None, :] - at[:, None]).abs()


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.back = nn.Linear(WIDTH, WIDTH, bias=False)
        self.scale = (WIDTH // HEADS) ** -0.5

    def split(self, t):
        return t.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def forward(self, x, penalty):
        n, s, c = x.shape
        q, k, v = map(self.split, self.project(x).chunk(3, -1))
        bias = penalty.to(q.dtype)[None]
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=self.scale)
        mixed = mixed.transpose(1, 2).reshape(n, s, c)
        return self.back(mixed)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix = Mixer()
        self.ff = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, penalty):
        x = x + self.mix(self.n1(x), penalty)
        return x + self.ff(self.n2(x))


class Genome(nn.Module):
    def __init__(self):
        super().__init__()
        self.bases = nn.Embedding(8, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.read = nn.Linear(WIDTH, 8)
        self.register_buffer("penalty", distance_penalty(HEADS, SPAN).to(torch.bfloat16))

    def forward(self, ids):
        x = self.bases(ids)
        for layer in self.layers:
            x = layer(x, self.penalty)
        return self.read(x)


torch.manual_seed(3)
net = Genome().to(DEV)
opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
genome = torch.randint(1, 5, (BATCH * 64, SPAN), device=DEV)
hide = torch.rand(BATCH * 64, SPAN, device=DEV) < 0.15
running = torch.zeros((), device=DEV)
for step in range(STEPS):
    at = (step % 64) * BATCH
    truth, hidden = genome[at : at + BATCH], hide[at : at + BATCH]
    with torch.autocast(DEV.type, dtype=torch.bfloat16):
        guess = net(truth.masked_fill(hidden, 5))
        loss = F.cross_entropy(guess.flatten(0, 1), truth.masked_fill(~hidden, -100).flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    running += loss.detach()
print(f"mean loss {running.item() / STEPS:.3f}")
