"""Language model with a 4096-token window, trained on concatenated documents."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.to_out(out.transpose(1, 2).reshape(b, n, d))


def feed_forward(dim, mult=4):
    return nn.Sequential(
        nn.LayerNorm(dim),
        nn.Linear(dim, dim * mult),
        nn.GELU(approximate="tanh"),
        nn.Linear(dim * mult, dim),
    )


class LongLM(nn.Module):
    def __init__(self, vocab, dim, depth, heads, window):
        super().__init__()
        self.token_emb = nn.Embedding(vocab, dim)
        self.pos_emb = nn.Parameter(torch.randn(window, dim) * 0.02)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.attns = nn.ModuleList(CausalAttention(dim, heads, window) for _ in range(depth))
        self.ffs = nn.ModuleList(feed_forward(dim) for _ in range(depth))
        self.to_logits = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False))

    def forward(self, ids):
        x = self.token_emb(ids) + self.pos_emb[: ids.size(1)]
        for norm, attn, ff in zip(self.norms, self.attns, self.ffs):
            x = x + attn(norm(x))
            x = x + ff(x)
        return self.to_logits(x)


def get_args():
    gpu = torch.cuda.is_available()
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--device", default="cuda" if gpu else "cpu")
    p.add_argument("--window", type=int, default=4096 if gpu else 64)
    p.add_argument("--dim", type=int, default=1024 if gpu else 32)
    p.add_argument("--depth", type=int, default=6 if gpu else 2)
    p.add_argument("--heads", type=int, default=16 if gpu else 2)
    p.add_argument("--vocab", type=int, default=16000 if gpu else 128)
    p.add_argument("--batch", type=int, default=4 if gpu else 2)
    p.add_argument("--steps", type=int, default=100 if gpu else 5)
    p.add_argument("--lr", type=float, default=3e-4)
    return p.parse_args()


def main():
    args = get_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    on_gpu = args.device == "cuda"
    model = LongLM(args.vocab, args.dim, args.depth, args.heads, args.window).to(args.device)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05, fused=on_gpu)
    documents = torch.randint(0, args.vocab, (64, args.window + 1), device=args.device)

    began = time.perf_counter()
    for step in range(args.steps):
        at = step * args.batch % (len(documents) - args.batch)
        rows = documents[at : at + args.batch]
        with torch.autocast(args.device, dtype=torch.bfloat16, enabled=on_gpu):
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if (step + 1) % 25 == 0:
            speed = (step + 1) * rows[:, 1:].numel() / (time.perf_counter() - began)
            print(f"step {step + 1}  loss {loss.item():.4f}  {speed:.0f} tokens/s")
    print(f"last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
