"""Sequential recommender: predicts the next item at each position with a sampled vocabulary."""
import json
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

CONFIG = json.loads(
    """
    {
      "items": 8000, "dim": 512, "heads": 8, "depth": 8, "length": 200,
      "batch": 128, "steps": 80, "lr": 0.0003
    }
    """
)
CONFIG["recompute"] = False
if os.environ.get("SMALL"):
    CONFIG.update(items=100, dim=32, heads=2, depth=1, length=12, batch=2, steps=30)


class Unit(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class SessionModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.items = nn.Embedding(c["items"], c["dim"])
        self.place = nn.Parameter(torch.zeros(c["length"], c["dim"]))
        self.units = nn.ModuleList(Unit(c["dim"], c["heads"]) for _ in range(c["depth"]))
        self.norm = nn.LayerNorm(c["dim"])
        self.run = self.thrifty if c["recompute"] else self.plain

    @staticmethod
    def plain(unit, x):
        return unit(x)

    @staticmethod
    def thrifty(unit, x):
        return checkpoint(unit, x, use_reentrant=False)

    def forward(self, seen):
        x = self.items(seen) + self.place
        for unit in self.units:
            x = self.run(unit, x)
        return F.linear(self.norm(x), self.items.weight)


def sessions(c, device):
    g = torch.Generator(device).manual_seed(0)
    for _ in range(c["steps"]):
        block = torch.randint(c["items"], (c["batch"], c["length"] + 1), device=device, generator=g)
        yield block[:, :-1], block[:, 1:]


def main(c):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = SessionModel(c).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=c["lr"], fused=True)
    for i, (seen, following) in enumerate(sessions(c, device)):
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(model(seen).flatten(0, 1), following.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            print(i, f"{loss.item():.4f}")


if __name__ == "__main__":
    main(CONFIG)
