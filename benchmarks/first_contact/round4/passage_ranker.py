"""Dense retrieval: queries are trained against a large frozen bank of passage vectors."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


def options():
    ap = argparse.ArgumentParser(description=__doc__)
    tiny = os.environ.get("SMALL") == "1"
    ap.add_argument("--bank", type=int, default=512 if tiny else 49152)
    ap.add_argument("--queries", type=int, default=16 if tiny else 2048)
    ap.add_argument("--length", type=int, default=16 if tiny else 32)
    ap.add_argument("--dim", type=int, default=32 if tiny else 768)
    ap.add_argument("--layers", type=int, default=1 if tiny else 4)
    ap.add_argument("--heads", type=int, default=2 if tiny else 12)
    ap.add_argument("--vocab", type=int, default=128 if tiny else 8192)
    ap.add_argument("--steps", type=int, default=30 if tiny else 70)
    ap.add_argument("--temperature", type=float, default=0.05)
    return ap.parse_args()


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.merge = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).transpose(1, 3).unbind(2)
        return self.merge(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class QueryTower(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.tok = nn.Embedding(o.vocab, o.dim)
        self.pos = nn.Parameter(torch.zeros(o.length, o.dim))
        self.att = nn.ModuleList(Attention(o.dim, o.heads) for _ in range(o.layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(o.dim, 4 * o.dim), nn.GELU(), nn.Linear(4 * o.dim, o.dim)) for _ in range(o.layers))
        self.n1 = nn.ModuleList(nn.LayerNorm(o.dim) for _ in range(o.layers))
        self.n2 = nn.ModuleList(nn.LayerNorm(o.dim) for _ in range(o.layers))

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        for att, mlp, n1, n2 in zip(self.att, self.mlp, self.n1, self.n2):
            x = x + att(n1(x))
            x = x + mlp(n2(x))
        return F.normalize(x.mean(1).float(), dim=-1)


def rank_loss(queries, bank, positive, temperature):
    scores = torch.mm(queries, bank.t())  # flaw: fp32-matmul
    return F.cross_entropy(scores / temperature, positive)


def main(o):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(13)
    tower = QueryTower(o).to(device)
    opt = torch.optim.AdamW(tower.parameters(), lr=2e-5, fused=True)
    bank = F.normalize(torch.randn(o.bank, o.dim, device=device), dim=-1)
    questions = torch.randint(o.vocab, (o.queries * 10, o.length), device=device)
    answers = torch.randint(o.bank, (o.queries * 10,), device=device)
    for step in range(o.steps):
        batch = torch.randint(len(questions), (o.queries,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            vectors = tower(questions[batch])
        loss = rank_loss(vectors, bank, answers[batch], o.temperature)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 10 == 0:
            print(f"{step:>4} {loss.item():.4f}")


if __name__ == "__main__":
    main(options())
