"""Masked residue training of a protein encoder; sequences have different lengths."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY", "0") != "0"
cfg = dict(length=48, width=64, heads=4, depth=2, batch=4, steps=4) if TINY else dict(
    length=1024, width=768, heads=12, depth=8, batch=16, steps=200)
RESIDUES = 26
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def attend(query, key, value, present):
    """Heads are in the third place: [batch, residues, heads, channels]."""
    query, key, value = (t.transpose(1, 2) for t in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=present[:, None, None, :]).transpose(1, 2)


class ResidueLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.pre = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.gate = nn.Linear(width, width)
        self.merge = nn.Linear(width, width)
        self.transition = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, present):
        y = self.pre(x)
        q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, -1)).unbind(2)
        mixed = attend(q, k, v, present).flatten(2)
        x = x + self.merge(mixed * self.gate(y).sigmoid())
        return x + self.transition(x)


class ProteinEncoder(nn.Module):
    def __init__(self, length, width, heads, depth, **_):
        super().__init__()
        self.letters = nn.Embedding(RESIDUES, width)
        self.places = nn.Embedding(length, width)
        self.layers = nn.ModuleList([ResidueLayer(width, heads) for _ in range(depth)])
        self.last = nn.LayerNorm(width)
        self.guess = nn.Linear(width, RESIDUES)
        self.register_buffer("index", torch.arange(length), persistent=False)

    def forward(self, letters, present):
        x = self.letters(letters) + self.places(self.index)
        for layer in self.layers:
            x = layer(x, present)
        return self.guess(self.last(x))


def sequences():
    """Endless batches, drawn on the device: letters, which of them exist, and which are hidden."""
    while True:
        letters = torch.randint(0, 20, (cfg["batch"], cfg["length"]), device=dev)
        ends = torch.randint(cfg["length"] * 3 // 4, cfg["length"] + 1, (cfg["batch"], 1), device=dev)
        present = torch.arange(cfg["length"], device=dev) < ends
        hidden = (torch.rand(letters.shape, device=dev) < 0.5) & present
        yield letters, present, hidden


torch.manual_seed(7)
model = ProteinEncoder(**cfg).to(dev)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
for step, (letters, present, hidden) in zip(range(cfg["steps"]), sequences()):
    with torch.autocast(dev.type, dtype=torch.bfloat16):
        guess = model(letters.masked_fill(hidden, 25), present)
        loss = F.cross_entropy(guess.flatten(0, 1), letters.masked_fill(~hidden, -100).flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 40 == 0:
        print(step, f"{loss.item():.3f}", flush=True)
print("done", f"{loss.item():.3f}")
