"""Adapts a frozen language model to instruction data with low-rank updates."""
import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class LowRankLinear(nn.Module):
    """Frozen linear layer plus a trained update of small rank."""

    def __init__(self, inputs, outputs, rank, alpha=32.0):
        super().__init__()
        weight = torch.randn(outputs, inputs) * 0.02
        self.weight = nn.Parameter(weight.to(torch.bfloat16), requires_grad=False)
        self.a = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.b = nn.Parameter(torch.zeros(outputs, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return F.linear(x, self.weight) + F.linear(F.linear(x, self.a) * self.scale, self.b)


class Block(nn.Module):
    def __init__(self, dim, rank):
        super().__init__()
        self.heads = max(1, dim // 64)
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = LowRankLinear(dim, 3 * dim, rank)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.up, self.down = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.embed = nn.Embedding(args.vocab, args.dim)
        self.pos = nn.Parameter(0.02 * torch.randn(args.prompt + args.answer, args.dim))
        self.blocks = nn.ModuleList(Block(args.dim, args.rank) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.dim)
        self.head = nn.Linear(args.dim, args.vocab, bias=False)
        for name, p in self.named_parameters():
            if not name.endswith(("qkv.a", "qkv.b")):
                p.requires_grad_(False)
                p.data = p.data.to(torch.bfloat16)

    def forward(self, ids, answer):
        """Loss of the last `answer` tokens; the prompt itself is not scored."""
        x = self.embed(ids[:, :-1]) + self.pos[:ids.shape[1] - 1]
        for block in self.blocks:
            x = block(x)
        scores = self.head(self.norm(x[:, -answer:]))
        return F.cross_entropy(scores.flatten(0, 1), ids[:, -answer:].flatten())


def instructions(args, device):
    """The answer repeats the prompt's beginning with shifted ids."""
    gen = torch.Generator(device).manual_seed(5)
    while True:
        prompt = torch.randint(args.vocab // 2, (args.batch, args.prompt), device=device, generator=gen)
        yield torch.cat([prompt, prompt[:, :args.answer] + args.vocab // 2], dim=1)


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--vocab", type=int, default=16_384 if cuda else 64)
    ap.add_argument("--dim", type=int, default=1024 if cuda else 32)
    ap.add_argument("--layers", type=int, default=8 if cuda else 2)
    ap.add_argument("--rank", type=int, default=16 if cuda else 8)
    ap.add_argument("--prompt", type=int, default=769 if cuda else 17)
    ap.add_argument("--answer", type=int, default=256 if cuda else 8)
    ap.add_argument("--batch", type=int, default=24 if cuda else 2)
    ap.add_argument("--steps", type=int, default=120 if cuda else 4)
    args = ap.parse_args()
    device = "cuda" if cuda else "cpu"
    torch.manual_seed(0)
    model = Model(args).to(device)
    if cuda:
        for block in model.blocks:
            block.compile()
    trained = [p for p in model.parameters() if p.requires_grad]
    total, small = sum(p.numel() for p in model.parameters()), sum(p.numel() for p in trained)
    print(f"{total / 1e6:.2f} M parameters, {small / 1e6:.2f} M of them are trained")
    optimizer = torch.optim.AdamW(trained, lr=2e-3, fused=True)
    losses = []
    for _, ids in zip(range(args.steps), instructions(args, device)):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(ids, args.answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    print(f"loss {losses[0].item():.4f} -> {torch.stack(losses[-5:]).mean().item():.4f}")


if __name__ == "__main__":
    main()
