"""Formulas as people write them: what each fused form has to agree with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent

import torch

from tests.rules.expressions import ACTIVATIONS, LOSSES, NAMED

Make = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Snippet:
    rule: str
    name: str
    code: str
    inputs: tuple[Make, ...]
    after: str  # what stands in the fixed code; of refused ones, in the message
    tolerance: float = 1e-5


def _real(*shape: int) -> Make:
    return lambda: torch.randn(*shape, requires_grad=True)


def _classes(*shape: int, count: int = 5) -> Make:
    return lambda: torch.randint(0, count, shape)


def _snippet(rule: str, name: str, inputs: tuple[Make, ...], after: str, code: str) -> Snippet:
    head = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
    return Snippet(rule, name, head + dedent(code).lstrip("\n"), inputs, after)


_X = (_real(4, 6, 8),)
_QKV = (_real(2, 3, 5, 4), _real(2, 3, 5, 4), _real(2, 3, 5, 4))

_NORMS = [
    _snippet("hand-written-norm", "var-unbiased-false", _X, "F.layer_norm(x, x.shape[-1:], eps=1e-05)", """
        def compute(x):
            return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
        """),
    _snippet("hand-written-norm", "mean-of-squares-minus-square", _X, "F.layer_norm(x", """
        def compute(x):
            mean = torch.mean(x, dim=-1, keepdim=True)
            var = torch.mean(x ** 2, dim=-1, keepdim=True) - mean ** 2
            return (x - mean) * (var + 1e-5).rsqrt()
        """),
    _snippet("hand-written-norm", "two-trailing-dimensions", _X, "x.shape[-2:]", """
        def compute(x):
            mu = x.mean(dim=(-2, -1), keepdim=True)
            centred = x - mu
            return centred / (centred.square().mean(dim=(-2, -1), keepdim=True) + 1e-5).sqrt()
        """),
    _snippet("hand-written-norm", "var-mean-unsqueezed", _X, "F.layer_norm(x", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(8))
                self.bias = nn.Parameter(torch.zeros(8))

            def forward(self, x):
                mean = x.mean(-1).unsqueeze(-1)
                var = ((x - mean) ** 2).mean(-1)[..., None]
                x = (x - mean) / torch.sqrt(var + 1e-5)
                x = x * self.weight + self.bias
                return x
        """),
    _snippet("hand-written-norm", "torch-var-mean", _X, "F.layer_norm(x", """
        def compute(x):
            var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
            return (x - mean) * torch.rsqrt(var + 1e-5)
        """),
    _snippet("hand-written-norm", "root-mean-square", _X, "x.shape[-1:], self.scale, self.eps)", """
        class Module(nn.Module):
            def __init__(self, eps=1e-6):
                super().__init__()
                self.eps = eps
                self.scale = nn.Parameter(torch.ones(8))

            def forward(self, x):
                rms = torch.sqrt(torch.mean(x.pow(2), dim=-1, keepdim=True) + self.eps)
                return self.scale * (x / rms)
        """),
    _snippet("hand-written-norm", "one-plus-weight", _X, "1 + self.weight", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.zeros(8))

            def forward(self, x):
                x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
                return x * (1 + self.weight)
        """),
    _snippet("hand-written-norm", "gain-on-both-sides", _X, "F.layer_norm(x, x.shape[-1:], self.weight", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(8))

            def forward(self, x):
                mean = x.mean(-1, keepdim=True)
                var = x.var(-1, keepdim=True, unbiased=False)
                return (x * self.weight - mean * self.weight) / torch.sqrt(1e-5 + var)
        """),
    _snippet("hand-written-norm", "in-a-method-of-its-own", _X, "x.shape[-1:], self.g, self.tiny)", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.tiny = 1e-6
                self.g = nn.Parameter(torch.ones(8))

            def scaled(self, h):
                '''Without the gain.'''
                size = h.square().mean(-1, keepdim=True)
                return h * (size + self.tiny).rsqrt()

            def forward(self, x):
                h = self.scaled(x)
                return self.g * h
        """),
    _snippet("hand-written-norm", "in-a-function", _X, "x.shape[-1:], self.weight, self.bias, 1e-05)", """
        def standard(rows, small):
            rows = rows - rows.mean(-1, keepdim=True)
            return rows / torch.sqrt((rows * rows).mean(-1, keepdim=True) + small)

        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(8))
                self.bias = nn.Parameter(torch.zeros(8))

            def forward(self, x):
                return standard(small=1e-5, rows=x) * self.weight + self.bias
        """),
    _snippet("hand-written-norm", "a-helper-makes-its-input", _X, "F.rms_norm(h, h.shape", """
        def twice(x):
            return x * 2 + 1

        def compute(x):
            h = twice(x)
            return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        """),
    _snippet("hand-written-norm", "residual-is-no-shift", (_real(4, 8), _real(4, 8)), "residual + F", """
        def compute(x, residual):
            mean = x.mean(-1, keepdim=True)
            var = (x - mean).pow(2).mean(-1, keepdim=True)
            return residual + (x - mean) / torch.sqrt(var + 1e-5)
        """),
]  # fmt: skip

_ATTENTION = [
    _snippet("hand-written-attention", "plain", _QKV, "scaled_dot_product_attention(q, k, v)", """
        def compute(q, k, v):
            return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1) @ v
        """),
    _snippet("hand-written-attention", "no-scale", _QKV, "scale=1.0", """
        def compute(q, k, v):
            weights = F.softmax(torch.matmul(q, k.permute(0, 1, 3, 2)), dim=-1)
            return torch.matmul(weights, v)
        """),
    _snippet("hand-written-attention", "own-scale", _QKV, "scale=0.3", """
        def compute(q, k, v):
            scores = q @ k.mT * 0.3
            return scores.softmax(-1) @ v
        """),
    _snippet("hand-written-attention", "divided-by-a-number-of-its-own", _QKV, "scale=1 / self.heat", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.heat = 4 ** 0.5 + 1

            def forward(self, q, k, v):
                near = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.heat
                near = near.softmax(dim=-1)
                return torch.einsum("bhqk,bkhd->bqhd", near, v)
        """),
    _snippet("hand-written-attention", "query-scaled-first", _QKV, "attention(q, k, v)", """
        def compute(q, k, v):
            q = q * q.shape[-1] ** -0.5
            return (q @ k.transpose(2, 3)).softmax(dim=-1) @ v
        """),
    _snippet("hand-written-attention", "keys-turned-early", _QKV, "k, v", """
        def compute(q, k, v):
            kt = k.transpose(-1, -2)
            d_k = q.size(-1)
            return F.softmax(torch.matmul(q, kt) / d_k ** 0.5, dim=-1).matmul(v)
        """),
    _snippet("hand-written-attention", "boolean-mask", _QKV, "attn_mask=mask", """
        def compute(q, k, v):
            mask = torch.arange(5)[None, None, None, :] < 4
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.shape[-1])
            scores = scores.masked_fill(~mask, float("-inf"))
            return scores.softmax(dim=-1) @ v
        """),
    _snippet("hand-written-attention", "mask-of-zeros-and-ones", _QKV, "attn_mask=keep != 0", """
        def compute(q, k, v):
            keep = torch.tensor([[1, 1, 0, 1, 1]])
            scores = torch.matmul(q, k.transpose(-1, -2)).div(math.sqrt(q.size(-1)))
            scores.masked_fill_(keep == 0, -1e9)
            return torch.matmul(scores.softmax(dim=-1), v)
        """),
    _snippet("hand-written-attention", "added-mask", (*_QKV, _real(5, 5)), "attn_mask=bias", """
        def compute(q, k, v, bias):
            scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
            weights = torch.softmax(scores + bias, dim=-1)
            return torch.einsum("bhqk,bhkd->bhqd", weights, v)
        """),
    _snippet("hand-written-attention", "causal", _QKV, "is_causal=True", """
        def compute(q, k, v):
            t = q.size(-2)
            future = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(q.size(-1)))
            att = att.masked_fill(future, float("-inf"))
            return F.softmax(att, dim=-1) @ v
        """),
    _snippet("hand-written-attention", "causal-as-flags", _QKV, "is_causal=True", """
        def compute(q, k, v):
            past = torch.ones(5, 5).tril()[None, None].to(torch.bool)
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
            return scores.masked_fill(~past, float("-inf")).softmax(-1) @ v
        """),
    _snippet("hand-written-attention", "where", _QKV, "attn_mask=keep", """
        def compute(q, k, v):
            keep = torch.rand(5, 5, generator=torch.Generator().manual_seed(1)).fill_diagonal_(1) > 0.4
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
            scores = torch.where(keep, scores, torch.finfo(scores.dtype).min)
            return scores.softmax(-1) @ v
        """),
    _snippet("hand-written-attention", "mask-if-given", _QKV, "attn_mask=mask", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.dropout = nn.Dropout(0.1)
                self.scale = 0.5

            def forward(self, q, k, v, mask=None):
                scores = torch.matmul(q * self.scale, k.transpose(-2, -1))
                if mask is not None:
                    scores = scores + mask
                probs = self.dropout(nn.functional.softmax(scores, dim=-1))
                return torch.matmul(probs, v)
        """),
]  # fmt: skip

_LOOPS = [
    _snippet("cat-in-loop", "grown", _X, "out_parts.append(x[i] * i)", """
        def compute(x):
            out = torch.zeros(0, 8)
            for i in range(x.shape[0]):
                out = torch.cat([out, x[i] * i], dim=0)
            return out
        """),
    _snippet("cat-in-loop", "changed-in-place", _X, "out_parts.append(state[None].clone())", """
        def compute(x):
            out, state = torch.zeros(0, 6, 8), torch.zeros(6, 8)
            for i in range(x.shape[0]):
                state += x[i]
                out = torch.cat([out, state[None]])
            return out
        """),
    _snippet("cat-in-loop", "a-view-of-what-changes", _X, "out_parts.append(row.clone())", """
        def compute(x):
            out, state = torch.zeros(0, 6, 8), torch.zeros(6, 8)
            for i in range(x.shape[0]):
                row = state.unsqueeze(0)
                state.add_(x[i])
                out = torch.cat([out, row])
            return out
        """),
    _snippet("cat-in-loop", "from-none", _X, "total_parts = []", """
        def compute(x):
            total = None
            for row in x:
                if total is None:
                    total = row.exp()
                else:
                    total = torch.cat((total, row.exp()), 1)
            return total
        """),
]  # fmt: skip

_INPUTS = {
    "classes": (_real(6, 5), _classes(6)),
    "shares": (_real(6, 5), lambda: torch.rand(6, 5)),
    "pair": (_real(6, 5), _real(6, 5)),
}
_RETURN = "def compute({}):\n    return {}\n"

SNIPPETS = [
    *_NORMS,
    *_ATTENTION,
    *(_snippet("hand-written-activation", name, (_real(4, 8),), after, _RETURN.format("x", formula))
      for name, after, formula in ACTIVATIONS),
    *(_snippet("hand-written-activation", name, (_real(4, 8),), after,
               constants + "\n\n" + _RETURN.format("x", formula))
      for name, after, constants, formula in NAMED),
    *(_snippet("hand-written-loss", name, _INPUTS[kind], after, _RETURN.format("x, y", formula))
      for name, kind, after, formula in LOSSES),
    *_LOOPS,
]  # fmt: skip

REFUSED = [
    _snippet("hand-written-norm", "unbiased", _X, "divided by the size minus one", """
        def compute(x):
            return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)
        """),
    _snippet("hand-written-norm", "eps-outside", _X, "eps is added to the deviation", """
        def compute(x):
            return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)
        """),
    _snippet("hand-written-norm", "over-channels", _X, "does not normalize the last dimensions", """
        def compute(x):
            mean = x.mean(1, keepdim=True)
            return (x - mean) / torch.sqrt((x - mean).pow(2).mean(1, keepdim=True) + 1e-5)
        """),
    _snippet("hand-written-norm", "matrix-of-gains", _X, "are not vectors", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(1, 8))

            def forward(self, x):
                x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
                return x * self.weight
        """),
    _snippet("hand-written-attention", "learned-temperature", _QKV, "its scale may be a tensor", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.temperature = nn.Parameter(torch.ones(1))

            def forward(self, q, k, v):
                return torch.softmax(q @ k.transpose(-2, -1) * self.temperature, -1) @ v
        """),
    _snippet("hand-written-attention", "divided-by-a-learned-number", _QKV, "its scale may be a tensor", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.heat = nn.Parameter(torch.ones(1))

            def forward(self, q, k, v):
                return torch.softmax(q @ k.transpose(-2, -1) / self.heat, -1) @ v
        """),
    _snippet("hand-written-attention", "divided-by-a-property", _QKV, "its scale may be a tensor", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.cold = nn.Parameter(torch.ones(1))

            @property
            def heat(self):
                return 1 / self.cold

            def forward(self, q, k, v):
                return torch.softmax(q @ k.transpose(-2, -1) / self.heat, -1) @ v
        """),
    _snippet("hand-written-attention", "times-a-buffer", _QKV, "its scale may be a tensor", """
        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("heat", torch.ones(1))

            def forward(self, q, k, v):
                return torch.softmax(q @ k.transpose(-2, -1) * self.heat, -1) @ v
        """),
    _snippet("hand-written-attention", "mask-that-lowers-little", _QKV, "too high to become zero", """
        def compute(q, k, v):
            scores = q @ k.transpose(-2, -1)
            scores = scores.masked_fill(torch.eye(5).bool(), -2.0)
            return scores.softmax(-1) @ v
        """),
    _snippet("hand-written-activation", "quick-gelu", (_real(4, 8),), "torch has no call for", """
        def compute(x):
            return x * torch.sigmoid(1.702 * x)
        """),
]  # fmt: skip
