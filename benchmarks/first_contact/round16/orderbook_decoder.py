"""Next-event model of an order book: a decoder over event tokens."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"

SETTINGS = dict(events=1024, width=768, heads=12, depth=6, context=4096, batch=4, steps=500)
if TINY:
    SETTINGS.update(events=64, width=32, heads=2, depth=2, context=32, batch=2, steps=6)


class HeadsMixin:
    def to_heads(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def from_heads(self, x):
        return x.transpose(1, 2).flatten(2)


class SelfAttention(HeadsMixin, nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x, bias):
        q, k, v = map(self.to_heads, self.project(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)  # flaw: slow-attention-kernel
        return self.output(self.from_heads(mixed))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, x, bias):
        x = x + self.attention(self.norms[0](x), bias)
        return x + self.feed(self.norms[1](x))


class OrderBook(nn.Module):
    def __init__(self, events, width, heads, depth, context):
        super().__init__()
        self.embed = nn.Embedding(events, width)
        self.place = nn.Embedding(context, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, events, bias=False)
        bias = nn.Transformer.generate_square_subsequent_mask(context, dtype=torch.bfloat16)
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.place.weight
        for layer in self.layers:
            x = layer(x, self.bias)
        return self.head(self.norm(x))


def learn(events, width, heads, depth, context, batch, steps):
    torch.manual_seed(17)
    model = OrderBook(events, width, heads, depth, context).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    days = torch.randint(events, (8, batch, context + 1), device=device)
    step = 0
    while step < steps:
        day = days[step % 8]
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = model(day[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), day[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0 or step == steps:
            yield step, loss.item()


for step, loss in learn(**SETTINGS):
    print(f"{step:5d} {loss:.3f}")
