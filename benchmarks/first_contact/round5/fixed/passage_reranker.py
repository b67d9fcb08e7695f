"""Cross-encoder that scores (query, passage) pairs; pairwise margin training."""
import os

import torch
from torch import einsum, nn
import torch.nn.functional as F

SMALL = os.getenv("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class PairAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, keep):
        b, n, _ = x.shape
        q = self.to_q(x).reshape(b, n, self.heads, -1)
        k, v = (z.reshape(b, n, self.heads, -1) for z in self.to_kv(x).chunk(2, dim=-1))
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :], scale=self.scale).transpose(1, 2)
        return self.to_out(out.reshape(b, n, -1))


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.pre_attn, self.pre_ff = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = PairAttention(dim, heads)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, keep):
        x = x + self.attn(self.pre_attn(x), keep)
        return x + self.ff(self.pre_ff(x))


class Reranker(nn.Module):
    def __init__(self, vocab, dim, heads, depth, length):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Parameter(torch.randn(length, dim) * 0.02)
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads) for _ in range(depth)])
        self.score = nn.Linear(dim, 1)

    def forward(self, ids, keep):
        x = self.tokens(ids) + self.positions
        for blk in self.blocks:
            x = blk(x, keep)
        return self.score(x[:, 0]).squeeze(-1)


def make_pairs(groups, batch, length, vocab):
    ids = torch.randint(1, vocab, (groups, batch, length), device=device)
    lengths = torch.randint(int(length * 0.85), length + 1, (groups, batch, 1), device=device)
    keep = torch.arange(length, device=device) < lengths
    return ids, keep


def train(vocab=8000, dim=768, heads=12, depth=4, length=512, batch=32, steps=100):
    torch.manual_seed(0)
    model = Reranker(vocab, dim, heads, depth, length).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
    ids, keep = make_pairs(4, batch, length, vocab)
    for step in range(steps):
        g = step % 4
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = model(ids[g], keep[g]).float()
        good, bad = scores.chunk(2)
        loss = F.margin_ranking_loss(good, bad, torch.ones_like(good), margin=1.0)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 20 == 0:
            print("step", step, "margin loss", loss.item())


if __name__ == "__main__":
    if SMALL:
        train(vocab=100, dim=32, heads=2, depth=1, length=32, batch=4, steps=30)
    else:
        train()
