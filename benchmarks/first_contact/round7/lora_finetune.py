"""LoRA fine-tuning of a decoder whose base weights stay frozen."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BIG = device.type == "cuda"


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=1024 if BIG else 32)
    p.add_argument("--layers", type=int, default=8 if BIG else 2)
    p.add_argument("--heads", type=int, default=16 if BIG else 2)
    p.add_argument("--vocab", type=int, default=8192 if BIG else 128)
    p.add_argument("--seq", type=int, default=512 if BIG else 16)
    p.add_argument("--batch", type=int, default=24 if BIG else 2)
    p.add_argument("--rank", type=int, default=16 if BIG else 4)
    p.add_argument("--steps", type=int, default=120 if BIG else 4)
    p.add_argument("--lr", type=float, default=2e-4)
    return p.parse_args()


class LoRALinear(nn.Module):
    def __init__(self, n_in, n_out, rank, alpha=32.0):
        super().__init__()
        self.base = nn.Linear(n_in, n_out, bias=False, dtype=torch.bfloat16)
        self.base.weight.requires_grad_(False)
        self.down = nn.Linear(n_in, rank, bias=False, dtype=torch.bfloat16)
        self.up = nn.Linear(rank, n_out, bias=False, dtype=torch.bfloat16)
        nn.init.zeros_(self.up.weight)
        self.up.weight.data.mul_(alpha / rank)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class DecoderLayer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads = a.heads
        self.norm1 = nn.LayerNorm(a.dim, dtype=torch.bfloat16)
        self.qkv = LoRALinear(a.dim, 3 * a.dim, a.rank)
        self.proj = nn.Linear(a.dim, a.dim, bias=False, dtype=torch.bfloat16)
        self.norm2 = nn.LayerNorm(a.dim, dtype=torch.bfloat16)
        self.fc1 = nn.Linear(a.dim, 4 * a.dim, bias=False, dtype=torch.bfloat16)
        self.fc2 = nn.Linear(4 * a.dim, a.dim, bias=False, dtype=torch.bfloat16)
        for module in (self.norm1, self.norm2, self.proj, self.fc1, self.fc2):
            module.requires_grad_(False)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embed = nn.Embedding(a.vocab, a.dim, dtype=torch.bfloat16).requires_grad_(False)
        self.layers = nn.ModuleList(DecoderLayer(a) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.dim, dtype=torch.bfloat16).requires_grad_(False)
        self.head = nn.Linear(a.dim, a.vocab, bias=False, dtype=torch.bfloat16)
        self.head.requires_grad_(False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)  # flaw: needless-checkpointing
        return self.head(self.norm(x))


def main():
    args = parse()
    torch.manual_seed(1)
    model = Decoder(args).to(device)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"trainable {sum(p.numel() for p in trainable) / 1e6:.2f} M")
    optimizer = torch.optim.AdamW(trainable, lr=args.lr, weight_decay=0.0, fused=BIG)
    corpus = torch.randint(args.vocab, (512 if BIG else 8, args.seq + 1), device=device)
    order = torch.randint(corpus.size(0), (args.steps, args.batch), device=device)

    for step in range(args.steps):
        rows = corpus[order[step]]
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 40 == 0:
            print(f"{step:4d} {loss.item():.4f}")
    print(f"done {loss.item():.4f}")


main()
