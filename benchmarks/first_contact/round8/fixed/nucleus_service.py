"""Batched sampling from a retention language model with top-k and nucleus filtering."""

import argparse

import torch
from torch import nn

GPU = torch.cuda.is_available()


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--layers", type=int, default=12 if GPU else 2)
    p.add_argument("--dim", type=int, default=2048 if GPU else 64)
    p.add_argument("--heads", type=int, default=16 if GPU else 2)
    p.add_argument("--vocab", type=int, default=128256 if GPU else 1000)
    p.add_argument("--streams", type=int, default=256 if GPU else 4)
    p.add_argument("--tokens", type=int, default=700 if GPU else 40)
    p.add_argument("--top-k", type=int, default=64)
    p.add_argument("--top-p", type=float, default=0.92)
    p.add_argument("--temperature", type=float, default=0.7)
    return p.parse_args()


class Retention(nn.Module):
    """A layer with a state of constant size: S <- decay * S + k v^T, o = q S."""

    def __init__(self, dim, heads, decay):
        super().__init__()
        self.heads, self.decay = heads, decay
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.mlp_norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x, state):
        n, dim = x.shape
        width = dim // self.heads
        q, k, v = self.qkv(self.norm(x)).view(n, 3, self.heads, width).unbind(1)
        k = k.reshape(-1, width, 1)
        v = v.reshape(-1, 1, width)
        state.baddbmm_(k, v, beta=self.decay, alpha=width**-0.5)
        read = torch.bmm(q.reshape(-1, 1, width), state)
        x = x + self.out(read.view(n, dim))
        return x + self.down(self.act(self.up(self.mlp_norm(x))))


class RetentionLM(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.embed = nn.Embedding(args.vocab, args.dim)
        decays = [1 - 2.0 ** -(4 + i % 5) for i in range(args.layers)]
        self.layers = nn.ModuleList(Retention(args.dim, args.heads, d) for d in decays)
        self.norm = nn.LayerNorm(args.dim)
        self.head = nn.Linear(args.dim, args.vocab, bias=False)

    def forward(self, token, states):
        x = self.embed(token)
        for layer, state in zip(self.layers, states, strict=True):
            x = layer(x, state)
        return self.head(self.norm(x))


def sample(logits, top_k, top_p, temperature):
    logits = logits.float() / temperature
    kept, order = torch.topk(logits, top_k, dim=-1)
    probs = torch.softmax(kept, dim=-1)
    before = probs.cumsum(dim=-1) - probs
    probs = probs.masked_fill(before > top_p, 0.0)
    pick = torch.multinomial(probs, 1)
    return order.gather(1, pick).squeeze(1)


@torch.inference_mode()
def main():
    args = parse_args()
    torch.manual_seed(3)
    device = torch.device("cuda" if GPU else "cpu")
    dtype = torch.bfloat16 if GPU else torch.float32
    with device:
        model = RetentionLM(args).to(dtype).eval()
    width = args.dim // args.heads
    states = [
        torch.zeros(args.streams * args.heads, width, width, device=device, dtype=dtype)
        for _ in range(args.layers)
    ]
    token = torch.randint(args.vocab, (args.streams,), device=device)
    text = torch.empty(args.tokens, args.streams, dtype=torch.long, device=device)
    for t in range(args.tokens):
        logits = model(token, states)
        token = sample(logits, args.top_k, args.top_p, args.temperature)
        text[t] = token
    print(f"{args.streams} streams of {args.tokens} tokens, checksum {text.sum().item()}")


if __name__ == "__main__":
    main()
