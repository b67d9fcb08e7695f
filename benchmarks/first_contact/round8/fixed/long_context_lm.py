import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

BLOCKS = {}


def register(name):
    def wrap(cls):
        BLOCKS[name] = cls
        return cls

    return wrap


@register("attention")
class AttentionBlock(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        qkv = self.to_qkv(self.norm(x)).reshape(b, n, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.to_out(out.transpose(1, 2).reshape(b, n, d))


@register("feedforward")
class FeedForwardBlock(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.net = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim)
        )

    def forward(self, x):
        return x + self.net(x)


class LongContextLM(nn.Module):
    def __init__(self, vocab, dim, heads, depth, context, pattern=("attention", "feedforward")):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(context, dim))
        kinds = pattern * depth
        self.blocks = nn.ModuleList(BLOCKS[kind](dim, heads, context) for kind in kinds)
        self.norm = nn.LayerNorm(dim)
        self.unembed = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, targets):
        x = self.embed(ids) + self.pos[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.unembed(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def get_args():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", type=int, default=4096 if gpu else 64)
    parser.add_argument("--batch", type=int, default=4 if gpu else 2)
    parser.add_argument("--dim", type=int, default=1024 if gpu else 32)
    parser.add_argument("--heads", type=int, default=16 if gpu else 2)
    parser.add_argument("--depth", type=int, default=8 if gpu else 2)
    parser.add_argument("--vocab", type=int, default=16384 if gpu else 256)
    parser.add_argument("--steps", type=int, default=100 if gpu else 10)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main(args):
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    model = LongContextLM(args.vocab, args.dim, args.heads, args.depth, args.context).to(device)
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=gpu)
    books = torch.randint(args.vocab, (64, args.context + 1), device=device)

    for step in range(args.steps):
        rows = torch.randint(len(books), (args.batch,), device=device)
        page = books[rows]
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            loss = model(page[:, :-1], page[:, 1:])
        loss.backward()
        optim.step()
        optim.zero_grad()
        if (step + 1) % 50 == 0:
            print(f"{step + 1}: {loss.item():.4f}")
    print(f"last loss {loss.item():.5f}")


if __name__ == "__main__":
    main(get_args())
