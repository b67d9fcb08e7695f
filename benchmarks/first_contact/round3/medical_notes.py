# Small causal model for clinical notes. Everything is configured from one dictionary.
import os
import torch
import torch.nn.functional as F
from torch import nn

config = {
    "model": {"vocab": 4096, "width": 384, "heads": 6, "depth": 16, "length": 256},
    "data": {"batch": 64},
    "optimizer": {"name": "AdamW", "lr": 3e-4, "weight_decay": 0.05, "betas": (0.9, 0.95), "foreach": False},  # flaw: per-tensor-optimizer
    "steps": 100,
}
if os.environ.get("SMALL") == "1":
    config["model"] = {"vocab": 64, "width": 32, "heads": 2, "depth": 2, "length": 16}
    config["data"] = {"batch": 2}
    config["steps"] = 30


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        h = self.ln_1(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x))))


class Notes(nn.Module):
    def __init__(self, vocab, width, heads, depth, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocab, bias=False))

    def forward(self, ids):
        return self.out(self.blocks(self.tokens(ids) + self.positions.weight))


def make_optimizer(model, spec):
    spec = dict(spec)
    kind = getattr(torch.optim, spec.pop("name"))
    return kind(model.parameters(), **spec)


def train(config, device):
    shape = config["model"]
    model = Notes(**shape).to(device)
    optimizer = make_optimizer(model, config["optimizer"])
    notes = torch.randint(shape["vocab"], (40, config["data"]["batch"], shape["length"] + 1), device=device)

    def closure(ids):
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = model(ids[:, :-1])
            return F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())

    for step in range(config["steps"]):
        loss = closure(notes[step % 40])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


print(train(config, "cuda" if torch.cuda.is_available() else "cpu"))
