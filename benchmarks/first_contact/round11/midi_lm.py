"""Language model over symbolic-music events, trained from scratch."""
import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        visible = torch.ones(context, context, dtype=torch.bool).tril()
        self.register_buffer("visible", visible, persistent=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mask = self.visible[:n, :n]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # flaw: slow-attention-kernel
        return self.proj(y.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = CausalAttention(dim, heads, context)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class MusicLM(nn.Module):
    def __init__(self, events, dim, depth, context):
        super().__init__()
        self.token = nn.Embedding(events, dim)
        self.place = nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(Block(dim, max(1, dim // 64), context) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.register_buffer("steps", torch.arange(context), persistent=False)
        self.apply(self.init)

    @staticmethod
    def init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, events):
        x = self.token(events) + self.place(self.steps[:events.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token.weight)


class Corpus:
    """A long stream of events made of repeated, transposed motifs."""

    def __init__(self, length, events, device, seed=0):
        gen = torch.Generator(device).manual_seed(seed)
        motif = torch.randint(events // 2, (64, 32), device=device, generator=gen)
        choice = torch.randint(64, (length // 32,), device=device, generator=gen)
        shift = torch.randint(events // 2, (length // 32, 1), device=device, generator=gen)
        self.stream = (motif[choice] + shift).flatten()
        self.gen = gen

    def sample(self, batch, context):
        device = self.stream.device
        start = torch.randint(len(self.stream) - context - 1, (batch, 1), device=device, generator=self.gen)
        window = self.stream[start + torch.arange(context + 1, device=device)]
        return window[:, :-1], window[:, 1:]


def cosine(step, total, peak, warmup=20):
    if step < warmup:
        return peak * (step + 1) / warmup
    return 0.5 * peak * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--events", type=int, default=512 if cuda else 32)
    ap.add_argument("--context", type=int, default=2048 if cuda else 16)
    ap.add_argument("--batch", type=int, default=8 if cuda else 2)
    ap.add_argument("--dim", type=int, default=768 if cuda else 32)
    ap.add_argument("--depth", type=int, default=8 if cuda else 2)
    ap.add_argument("--steps", type=int, default=120 if cuda else 4)
    ap.add_argument("--lr", type=float, default=6e-4)
    args = ap.parse_args()
    device = "cuda" if cuda else "cpu"
    torch.manual_seed(0)
    model = MusicLM(args.events, args.dim, args.depth, args.context).to(device)
    if cuda:
        for block in model.blocks:
            block.compile()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), fused=True)
    corpus = Corpus(1 << 20 if cuda else 1 << 10, args.events, device)
    meter = torch.zeros((), device=device)
    for step in range(args.steps):
        for group in opt.param_groups:
            group["lr"] = cosine(step, args.steps, args.lr)
        events, following = corpus.sample(args.batch, args.context)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(events).flatten(0, 1), following.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter += loss.detach()
        if (step + 1) % 60 == 0:
            print(f"{step + 1} steps: mean loss {meter.item() / (step + 1):.4f}")
    print(f"mean loss {meter.item() / args.steps:.4f}")


if __name__ == "__main__":
    main()
