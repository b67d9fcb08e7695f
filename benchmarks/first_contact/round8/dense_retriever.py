"""Dual-encoder passage retriever with in-batch negatives; token ids live on the device."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


@dataclass
class Config:
    vocab: int = 8192 if GPU else 64
    dim: int = 768 if GPU else 32
    heads: int = 12 if GPU else 2
    depth: int = 6 if GPU else 1
    query_len: int = 32 if GPU else 4
    passage_len: int = 128 if GPU else 8
    batch: int = 256 if GPU else 4
    pairs: int = 16384 if GPU else 32
    steps: int = 120 if GPU else 4
    tau: float = 0.05


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.n1, self.n2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv = nn.Linear(c.dim, 3 * c.dim)
        self.out = nn.Linear(c.dim, c.dim)
        self.mlp = nn.Sequential(nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class TextEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tokens = nn.Embedding(c.vocab, c.dim)
        self.pos = nn.Parameter(0.02 * torch.randn(c.passage_len, c.dim))
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.depth))
        self.norm = nn.LayerNorm(c.dim)

    def forward(self, ids):
        x = self.tokens(ids) + self.pos[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return F.normalize(self.norm(x.mean(1)), dim=-1)


class Retriever(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.query, self.passage = TextEncoder(c), TextEncoder(c)
        self.tau = c.tau
        self.register_buffer("target", torch.arange(c.batch), persistent=False)

    def forward(self, q_ids, p_ids):
        scores = self.query(q_ids) @ self.passage(p_ids).t() / self.tau
        return F.cross_entropy(scores, self.target), scores.detach()


def main():
    c = Config()
    torch.manual_seed(0)
    passages = torch.randint(c.vocab, (c.pairs, c.passage_len), device=DEVICE)
    queries = passages[:, : c.query_len].contiguous()
    model = Retriever(c).to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=GPU)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 20))
    right = torch.zeros((), device=DEVICE)
    for step in range(1, c.steps + 1):
        rows = torch.randint(c.pairs, (c.batch,), device=DEVICE)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss, scores = model(queries[rows], passages[rows])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        right += (scores.argmax(1) == model.target).float().mean()
        if step % 30 == 0:
            print(f"step {step}: loss {loss.item():.4f}, in-batch accuracy {right.item() / 30:.3f}")
            right.zero_()


if __name__ == "__main__":
    main()
