"""Next-item model for shop sessions; objectives come from a registry."""
import dataclasses
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

REGISTRY = {}


def objective(name):
    def add(cls):
        REGISTRY[name] = cls
        return cls

    return add


@dataclasses.dataclass
class Settings:
    items: int = 24000
    width: int = 256
    layers: int = 3
    heads: int = 4
    session: int = 64
    batch: int = 256
    steps: int = 600
    objective: str = "next-item"


@objective("next-item")
class NextItem:
    """Negative log likelihood of what was clicked; item 0 is no click."""

    def __call__(self, scores, clicked):
        return F.cross_entropy(scores.float().flatten(0, 1), clicked.flatten(), ignore_index=0)


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads = s.heads
        self.a, self.b = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.qkv = nn.Linear(s.width, 3 * s.width)
        self.out = nn.Linear(s.width, s.width)
        self.mlp = nn.Sequential(nn.Linear(s.width, 4 * s.width), nn.GELU(), nn.Linear(4 * s.width, s.width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.a(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.b(x))


class SessionNet(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.items = nn.Embedding(s.items, s.width)
        nn.init.normal_(self.items.weight, std=0.02)
        self.when = nn.Parameter(torch.zeros(s.session, s.width))
        self.blocks = nn.Sequential(*[Block(s) for _ in range(s.layers)])
        self.norm = nn.LayerNorm(s.width)

    def forward(self, ids):
        h = self.norm(self.blocks(self.items(ids) + self.when))
        return h @ self.items.weight.t()


def main():
    s = Settings()
    if os.environ.get("TINY"):
        s = Settings(items=200, width=32, layers=1, heads=2, session=8, batch=4, steps=4)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    clicks = torch.randint(1, s.items, (s.batch * 32, s.session + 1), device=device)
    clicks[:, 0] = torch.randint(1, s.items // 50 + 2, (len(clicks),), device=device)
    clicks[::7, -2:] = 0
    net = SessionNet(s).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    criterion = REGISTRY[s.objective]()
    seen = []
    for step in range(s.steps):
        rows = clicks[(step % 32) * s.batch :][: s.batch]
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = net(rows[:, :-1])
        loss = criterion(scores, rows[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 49 or step == s.steps - 1:
            seen.append(loss.detach())
    print("loss", [round(v, 2) for v in torch.stack(seen).tolist()])


if __name__ == "__main__":
    main()
