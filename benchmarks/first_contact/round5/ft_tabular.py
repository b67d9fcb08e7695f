"""Feature-token transformer for tables: every column becomes a token."""
import os
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Spec(NamedTuple):
    columns: int
    dim: int
    heads: int
    depth: int
    batch: int
    steps: int


SPEC = Spec(6, 16, 2, 1, 8, 30) if os.environ.get("SMALL") == "1" else Spec(64, 256, 8, 6, 768, 90)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class TokenNorm(nn.Module):
    """Standardise each token over its features, then rescale."""

    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))
        self.beta = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mu = x.mean(-1, keepdim=True)  # flaw: hand-written-norm
        centred = x - mu  # flaw: hand-written-norm
        spread = (centred * centred).mean(-1, keepdim=True)  # flaw: hand-written-norm
        return centred / torch.sqrt(spread + self.eps) * self.gamma + self.beta  # flaw: hand-written-norm


class ColumnTokens(nn.Module):
    def __init__(self, columns: int, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns, dim) * 0.05)
        self.bias = nn.Parameter(torch.zeros(columns, dim))
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))

    def forward(self, row: Tensor) -> Tensor:
        tokens = torch.addcmul(self.bias, row.unsqueeze(-1), self.weight)
        return torch.cat((self.cls.expand(len(row), -1, -1), tokens), 1)


class Layer(nn.Module):
    def __init__(self, s: Spec):
        super().__init__()
        self.heads = s.heads
        self.norm1, self.norm2 = TokenNorm(s.dim), TokenNorm(s.dim)
        self.qkv, self.merge = nn.Linear(s.dim, 3 * s.dim), nn.Linear(s.dim, s.dim)
        self.fc1, self.fc2 = nn.Linear(s.dim, 2 * s.dim), nn.Linear(2 * s.dim, s.dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.merge(a.transpose(1, 2).flatten(2))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class FTTransformer(nn.Module):
    def __init__(self, s: Spec):
        super().__init__()
        self.tokens = ColumnTokens(s.columns, s.dim)
        self.layers = nn.Sequential(*(Layer(s) for _ in range(s.depth)))
        self.head = nn.Linear(s.dim, 1)

    def forward(self, row: Tensor) -> Tensor:
        return self.head(self.layers(self.tokens(row))[:, 0]).squeeze(-1)


def run(s: Spec) -> None:
    torch.manual_seed(4)
    net = FTTransformer(s).to(DEVICE)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=1e-5, fused=True)
    rows = torch.randn(8 * s.batch, s.columns, device=DEVICE)
    price = rows[:, 0] * rows[:, 1] + rows[:, 2].sin()
    for k in range(s.steps):
        sel = slice((k % 8) * s.batch, (k % 8 + 1) * s.batch)
        with torch.autocast(DEVICE, torch.bfloat16):
            guess = net(rows[sel])
        loss = F.mse_loss(guess.float(), price[sel])
        loss.backward()
        opt.step()
        opt.zero_grad()
        if k % 30 == 0:
            print(k, "mse", loss.item())


if __name__ == "__main__":
    run(SPEC)
