"""A decoder trained on bytes."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from dataclasses import dataclass


@dataclass
class Config:
    vocab: int = 1024
    dim: int = 1024
    heads: int = 16
    layers: int = 4
    context: int = 1024
    batch: int = 12
    steps: int = 400


class Block(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.norm1, self.norm2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv, self.proj = nn.Linear(c.dim, 3 * c.dim, bias=False), nn.Linear(c.dim, c.dim, bias=False)
        self.up, self.down = nn.Linear(c.dim, 4 * c.dim, bias=False), nn.Linear(4 * c.dim, c.dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.c.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.tok, self.pos = nn.Embedding(c.vocab, c.dim), nn.Parameter(torch.zeros(c.context, c.dim))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm, self.head = nn.LayerNorm(c.dim), nn.Linear(c.dim, c.vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main(c=Config()):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = GPT(c).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    data = torch.randint(0, c.vocab, (512, c.context + 1), device=device)
    total = torch.zeros((), device=device)
    for step in range(1, c.steps + 1):
        rows = data[torch.randint(0, len(data), (c.batch,), device=device)]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        total += loss.detach()
        if step % 100 == 0:
            print(step, total.item() / 100)
            total.zero_()


if __name__ == "__main__":
    main()
