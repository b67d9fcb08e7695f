"""Small causal model of source bytes, trained with sign momentum."""
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import Optimizer

tiny = "TINY" in os.environ
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
depth, width, context, rows, iters = (2, 64, 32, 4, 6) if tiny else (28, 512, 512, 16, 600)
VOCAB = 512


class SignMomentum(Optimizer):
    """Lion (Chen et al., 2023) with decoupled decay."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, decay=decay))
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["trend"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            self._apply(group, group["lr"], *group["betas"])

    def _apply(self, group, lr, b1, b2):
        alive = [p for p in group["params"] if p.grad is not None]
        trends = [self.state[p]["trend"] for p in alive]
        grads = [p.grad for p in alive]
        directions = torch._foreach_lerp(trends, grads, 1 - b1)
        torch._foreach_sign_(directions)
        torch._foreach_mul_(alive, 1 - lr * group["decay"])
        torch._foreach_add_(alive, directions, alpha=-lr)
        torch._foreach_lerp_(trends, grads, 1 - b2)


class Cell(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.f, self.g = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def split(self, t):
        return t.view(*t.shape[:2], -1, 64).transpose(1, 2)

    def forward(self, x):
        y = self.a(x)
        y = F.scaled_dot_product_attention(self.split(self.q(y)), self.split(self.k(y)), self.split(self.v(y)), is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.g(F.gelu(self.f(self.b(x))))


class Bytes(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, width)
        self.pos = nn.Parameter(torch.zeros(context, width))
        self.cells = nn.Sequential(*(Cell(width) for _ in range(depth)))
        self.end = nn.LayerNorm(width)
        self.out = nn.Linear(width, VOCAB)

    def forward(self, ids):
        return self.out(self.end(self.cells(self.tok(ids) + self.pos)))


def main() -> int:
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    net = Bytes().to(device)
    opt = SignMomentum(net.parameters())
    if not tiny:
        for cell in net.cells:
            cell.compile()
    corpus = (torch.arange(1 << 20, device=device) * 7919 % 65537 % VOCAB)
    corpus[::3] = 32
    spans = torch.arange(context + 1, device=device)
    gen = torch.Generator(device).manual_seed(8)
    it, seen = 0, torch.zeros((), device=device)
    while it < iters:
        starts = torch.randint(len(corpus) - context - 1, (rows, 1), device=device, generator=gen)
        text = corpus[starts + spans]
        with torch.autocast(device, torch.bfloat16, enabled=cuda):
            guess = net(text[:, :-1])
            loss = F.cross_entropy(guess.flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        seen = seen.lerp(loss.detach(), 0.1)
        it += 1
    print(f"bits per byte {seen.item() / 0.6931:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
