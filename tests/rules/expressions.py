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
    ("tanh-of-sigmoid", "torch.tanh(x)", "2 * torch.sigmoid(2 * x) - 1"),
    ("silu-of-tanh", "F.silu(x)", "0.5 * x * (torch.tanh(x / 2) + 1)"),
    ("softsign", "F.softsign(x)", "x / (1 + x.abs())"),
    ("log-sigmoid", "F.logsigmoid(x)", "torch.log(torch.sigmoid(x))"),
    ("leaky", "F.leaky_relu(x, 0.2)", "torch.where(x > 0, x, 0.2 * x)"),
    ("leaky-max", "F.leaky_relu(x, 0.01)", "torch.maximum(x, x * 0.01)"),
    ("elu", "F.elu(x)", "torch.where(x > 0, x, torch.exp(x) - 1)"),
    ("elu-scaled", "F.elu(x, 1.5)", "torch.where(x > 0, x, 1.5 * (x.exp() - 1))"),
    ("softmax", "torch.softmax(x, dim=-1)", "x.exp() / x.exp().sum(dim=-1, keepdim=True)"),
    ("softmax-stable", "torch.softmax(x, dim=1)",
     "(x - x.max(1, keepdim=True)[0]).exp() / (x - x.max(1, keepdim=True)[0]).exp().sum(1, keepdim=True)"),
]  # fmt: skip

#: name, what stands in the fixed code, constants of the file, formula
NAMED = [
    ("selu", "F.selu(x)", "ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805",
     "SCALE * torch.where(x > 0, x, ALPHA * torch.exp(x) - ALPHA)"),
    ("gelu-of-a-root", "approximate", "ROOT = math.sqrt(2 / math.pi)",
     "0.5 * x * (1 + torch.tanh(ROOT * (x + 0.044715 * x ** 3)))"),
    ("leaky-of-a-slope", "F.leaky_relu(x, SLOPE)", "SLOPE = 0.2", "torch.maximum(x, SLOPE * x)"),
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
    ("smoothed", "classes", "F.cross_entropy(x, y, label_smoothing=0.2)",
     "-((F.one_hot(y, 5).float() * 0.8 + 0.2 / 5) * F.log_softmax(x, dim=-1)).sum(-1).mean()"),
    ("smoothed-by-shape", "classes", "F.cross_entropy(x, y, label_smoothing=0.3)",
     "-(x.log_softmax(1) * (0.3 / x.shape[1] + 0.7 * F.one_hot(y, num_classes=x.shape[1]))).sum(1).mean()"),
    ("normaliser-less-scores", "classes", "F.cross_entropy(x, y, label_smoothing=0.2)",
     "torch.mean(torch.sum((F.one_hot(y, 5) * 0.8 + 0.2 / 5) * (x.logsumexp(1, keepdim=True) - x), dim=-1))"),
    ("surprise-gathered", "classes", "F.cross_entropy(x, y)",
     "(torch.logsumexp(x, -1, True) - x).gather(1, y[:, None]).mean()"),
    ("one-hot-by-shape", "classes", "F.cross_entropy(x, y)",
     "-(F.one_hot(y, x.size(-1)) * F.log_softmax(x, dim=-1)).sum(-1).mean()"),
    ("binary", "shares", "binary_cross_entropy_with_logits(x, y)",
     "-(y * torch.log(torch.sigmoid(x)) + (1 - y) * torch.log(1 - torch.sigmoid(x))).mean()"),
    ("binary-of-softplus", "shares", "with_logits(x, y)", "(F.softplus(x) - x * y).mean()"),
    ("squared-apart", "pair", "F.mse_loss(", "(x * x - 2 * x * y + y * y).mean()"),
    ("binary-of-sigmoid", "shares", "with_logits(x, y)",
     "F.binary_cross_entropy(torch.sigmoid(x), y)"),
    ("squared", "pair", "F.mse_loss(x, y)", "((x - y) ** 2).mean()"),
    ("absolute", "pair", "F.l1_loss(x, y)", "torch.mean(torch.abs(x - y))"),
    ("huber", "pair", "F.huber_loss(x, y)",
     "torch.where((x - y).abs() < 1, 0.5 * (x - y) ** 2, (x - y).abs() - 0.5).mean()"),
    ("huber-wide", "pair", "F.huber_loss(x, y, delta=2)",
     "torch.where((x - y).abs() < 2.0, 0.5 * (x - y).pow(2), 2.0 * ((x - y).abs() - 1.0)).mean()"),
]  # fmt: skip

#: rule, formula: at most numbers these look like what the rule finds, and at some they are something else
#: (or no tensors).
OTHERS = [
    ("hand-written-activation", "torch.relu(x).clamp(max=10)"),
    ("hand-written-activation", "torch.relu(x) * (x < 1000)"),
    ("hand-written-activation", "x * torch.sigmoid(x.clamp(-50, 50))"),
    ("hand-written-activation", "torch.sigmoid(x).clamp(1e-6, 1 - 1e-6)"),
    ("hand-written-activation", "torch.log(torch.relu(x) + 1e-6)"),
    ("hand-written-activation", "torch.where(x == 0, 1.0, torch.sigmoid(x))"),
    ("hand-written-activation", "x.float() * torch.sigmoid(x)"),
    ("hand-written-activation", "x / (1 + np.exp(-x))"),
    ("hand-written-activation", "1 / (1 + math.exp(-x))"),
    ("hand-written-loss", "((x - y) ** 2 * (y != 0)).mean()"),
    (
        "hand-written-loss",
        "-((torch.nn.functional.one_hot(y, 5) * 0.8 + 0.2 / 4) * x.log_softmax(1)).sum(1).mean()",
    ),
    (
        "hand-written-loss",
        "-((torch.nn.functional.one_hot(y, 5) * 0.9 + 0.2 / 5) * x.log_softmax(1)).sum(1).mean()",
    ),
    (
        "hand-written-loss",
        "-((torch.nn.functional.one_hot(y, 5) + 0.2 / 5) * x.log_softmax(1)).sum(1).mean()",
    ),
    ("hand-written-loss", "(x - x.logsumexp(1, keepdim=True)).gather(1, y[:, None]).mean()"),
    ("hand-written-loss", "np.mean((x - y) ** 2)"),
    ("hand-written-loss", "((x - y) ** 2 * (y > -100)).mean()"),
    ("hand-written-loss", "torch.where(y > -100, (x - y) ** 2, 0.0).mean()"),
    ("hand-written-loss", "((x - y) ** 2).clamp(max=100).mean()"),
    ("hand-written-loss", "((x - y.abs()) ** 2 / 2).mean()"),
    ("hand-written-loss", "((x - y) ** 2 / 2).mean()"),
    ("hand-written-loss", "torch.sqrt((x - y) ** 2 + 1e-6).mean()"),
    ("hand-written-loss", "-(y * torch.log(x + 1e-4) + (1 - y) * torch.log(1 - x + 1e-4)).mean()"),
    ("hand-written-norm", "x.clamp(-100, 100) * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)"),
    ("hand-written-norm", "x * torch.rsqrt((x * x).mean(-1, keepdim=True).clamp(min=1e-6))"),
]
