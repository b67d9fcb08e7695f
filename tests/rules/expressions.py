"""Activations and losses in one expression, as people write them out."""

from __future__ import annotations

#: name, what stands in the fixed code, formula
ACTIVATIONS = [
    ("gelu-tanh", 'approximate="tanh"',
     "0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))"),
    ("gelu-cubed", "approximate",
     "x * 0.5 * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))"),
    ("gelu-erf", "F.gelu(x)", "x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))"),
    ("silu", "F.silu(x)", "torch.sigmoid(x) * x"),
    ("silu-fraction", "F.silu(x)", "x / (1 + torch.exp(-x))"),
    ("mish", "F.mish(x)", "x * torch.tanh(F.softplus(x))"),
    ("mish-log", "F.mish(x)", "x * torch.log(1 + torch.exp(x)).tanh()"),
    ("hardswish", "F.hardswish(x)", "x * F.relu6(x + 3) / 6"),
    ("hardswish-clamp", "F.hardswish(x)", "x * (x + 3).clamp(0, 6) / 6.0"),
    ("softplus", "F.softplus(x)", "torch.log1p(torch.exp(x))"),
    ("sigmoid", "torch.sigmoid(x)", "1.0 / (1.0 + torch.exp(-x))"),
    ("tanh", "torch.tanh(x)", "(torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x))"),
    ("leaky", "F.leaky_relu(x, 0.2)", "torch.where(x > 0, x, 0.2 * x)"),
    ("leaky-max", "F.leaky_relu(x, 0.01)", "torch.maximum(x, x * 0.01)"),
    ("elu", "F.elu(x)", "torch.where(x > 0, x, torch.exp(x) - 1)"),
    ("elu-scaled", "F.elu(x, 1.5)", "torch.where(x > 0, x, 1.5 * (x.exp() - 1))"),
    ("softmax", "torch.softmax(x, dim=-1)", "x.exp() / x.exp().sum(dim=-1, keepdim=True)"),
    ("softmax-stable", "torch.softmax(x, dim=1)",
     "(x - x.max(1, keepdim=True)[0]).exp() / (x - x.max(1, keepdim=True)[0]).exp().sum(1, keepdim=True)"),
]  # fmt: skip

#: name, kind of inputs, what stands in the fixed code, formula
LOSSES = [
    ("indexed", "classes", "F.cross_entropy(x, y)",
     "-F.log_softmax(x, dim=1)[torch.arange(len(y)), y].mean()"),
    ("gathered", "classes", "F.cross_entropy(x, y)", "-x.log_softmax(-1).gather(1, y.view(-1, 1)).mean()"),
    ("one-hot", "classes", "F.cross_entropy(x, y)",
     "-(F.one_hot(y, 5).float() * torch.log(torch.softmax(x, 1))).sum(1).mean()"),
    ("nll", "classes", "F.cross_entropy(x, y)", "F.nll_loss(F.log_softmax(x, dim=1), y)"),
    ("logsumexp", "classes", "F.cross_entropy(x, y)",
     "-(x - torch.logsumexp(x, 1, keepdim=True)).gather(1, y[:, None]).mean()"),
    ("summed", "classes", 'F.cross_entropy(x, y, reduction="sum")',
     "-F.log_softmax(x, dim=1)[torch.arange(len(y)), y].sum()"),
    ("guarded", "classes", "F.cross_entropy(x, y)",
     "-torch.log(F.softmax(x, dim=-1) + 1e-9)[torch.arange(len(y)), y].mean()"),
    ("binary", "shares", "binary_cross_entropy_with_logits(x, y)",
     "-(y * torch.log(torch.sigmoid(x)) + (1 - y) * torch.log(1 - torch.sigmoid(x))).mean()"),
    ("binary-of-sigmoid", "shares", "with_logits(x, y)",
     "F.binary_cross_entropy(torch.sigmoid(x), y)"),
    ("squared", "pair", "F.mse_loss(x, y)", "((x - y) ** 2).mean()"),
    ("absolute", "pair", "F.l1_loss(x, y)", "torch.mean(torch.abs(x - y))"),
    ("huber", "pair", "F.huber_loss(x, y)",
     "torch.where((x - y).abs() < 1, 0.5 * (x - y) ** 2, (x - y).abs() - 0.5).mean()"),
    ("huber-wide", "pair", "F.huber_loss(x, y, delta=2)",
     "torch.where((x - y).abs() < 2.0, 0.5 * (x - y).pow(2), 2.0 * ((x - y).abs() - 1.0)).mean()"),
]  # fmt: skip
