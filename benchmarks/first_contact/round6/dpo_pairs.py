"""Direct preference optimisation of a decoder against its frozen starting point."""
import copy
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class DPOConfig:
    vocab: int = 16384
    dim: int = 768
    heads: int = 12
    depth: int = 6
    prompt: int = 128
    answer: int = 384
    pairs: int = 12
    beta: float = 0.1
    lr: float = 1e-5
    steps: int = 60


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.n1, self.n2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv, self.o = nn.Linear(c.dim, 3 * c.dim), nn.Linear(c.dim, c.dim)
        self.ff = nn.Sequential(nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class Policy(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c.vocab, c.dim)
        self.place = nn.Parameter(torch.randn(c.prompt + c.answer, c.dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.depth)])
        self.norm = nn.LayerNorm(c.dim)
        self.head = nn.Linear(c.dim, c.vocab, bias=False)

    def answer_logp(self, ids):
        """Sum of the log-probabilities of the answer's tokens; the head sees the answer's positions only."""
        h = self.blocks(self.embed(ids[:, :-1]) + self.place[:-1])
        h = self.norm(h[:, self.c.prompt - 1 :])
        target = ids[:, self.c.prompt :]
        nll = F.cross_entropy(self.head(h).flatten(0, 1), target.flatten(), reduction="none")
        return -nll.view(target.shape).sum(1)


def preferences(c, device):
    g = torch.Generator(device).manual_seed(0)
    for _ in range(c.steps):
        ids = torch.randint(c.vocab, (2 * c.pairs, c.prompt + c.answer), device=device, generator=g)
        ids[c.pairs :, : c.prompt] = ids[: c.pairs, : c.prompt]
        yield ids


def main():
    c = DPOConfig(128, 32, 2, 1, 8, 8, 2, steps=30) if os.environ.get("SMALL") else DPOConfig()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    policy = Policy(c).to(device)
    reference = copy.deepcopy(policy).to(torch.bfloat16).eval().requires_grad_(False)
    opt = torch.optim.AdamW(policy.parameters(), lr=c.lr, fused=True)
    wins = torch.zeros((), device=device)
    for i, ids in enumerate(preferences(c, device), 1):
        with torch.no_grad():
            base = reference.answer_logp(ids)
        with torch.autocast(device, torch.bfloat16):
            logp = policy.answer_logp(ids)
        margin = c.beta * (logp.float() - base.float())
        chosen, rejected = margin.chunk(2)
        loss = -F.logsigmoid(chosen - rejected).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        wins += (chosen > rejected).float().mean()
        if i % 20 == 0:
            print(f"step {i} preferred {wins.item() / i:.3f}")


if __name__ == "__main__":
    main()
