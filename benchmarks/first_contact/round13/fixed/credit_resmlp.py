"""Credit-risk scoring: a residual MLP on tabular features, with callbacks around the step."""
import os
from contextlib import ExitStack

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Callback:
    def around(self, trainer):
        """Context manager that wraps the step, or None."""

    def after(self, trainer, loss):
        pass


class NanGuard(Callback):
    def around(self, trainer):
        return torch.autograd.set_detect_anomaly(True)


class Precision(Callback):
    def around(self, trainer):
        return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


class Curve(Callback):
    def __init__(self, steps):
        self.values = torch.zeros(steps, device=device)

    def after(self, trainer, loss):
        self.values[trainer.done] = loss.detach()


class ResidualUnit(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.a, self.b = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


class Scorer(nn.Module):
    def __init__(self, features, dim, depth):
        super().__init__()
        self.inp = nn.Linear(features, dim)
        self.units = nn.Sequential(*(ResidualUnit(dim) for _ in range(depth)))
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        return self.out(self.units(self.inp(x))).squeeze(-1)


class Trainer:
    def __init__(self, model, data, callbacks, batch):
        self.model, self.data, self.callbacks, self.batch = model, data, callbacks, batch
        self.opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=device.type == "cuda")
        self.done = 0

    def step(self, x, y):
        with ExitStack() as stack:
            for cb in self.callbacks:
                ctx = cb.around(self)
                if ctx is not None:
                    stack.enter_context(ctx)
            loss = F.binary_cross_entropy_with_logits(self.model(x), y)
            loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        for cb in self.callbacks:
            cb.after(self, loss)
        self.done += 1

    def run(self, steps):
        x, y = self.data
        per_epoch = len(x) // self.batch
        while self.done < steps:
            lo = (self.done % per_epoch) * self.batch
            self.step(x[lo:lo + self.batch], y[lo:lo + self.batch])


def applicants(n, features):
    g = torch.Generator(device).manual_seed(77)
    x = torch.randn(n, features, generator=g, device=device)
    w = torch.randn(features, generator=g, device=device)
    return x, ((x @ w) > 0).float()


def main():
    torch.manual_seed(77)
    torch.set_float32_matmul_precision("high")
    batch, features, dim, depth, steps = (64, 16, 32, 2, 10) if tiny else (16384, 256, 1024, 12, 260)
    model = Scorer(features, dim, depth).to(device)
    curve = Curve(steps)
    trainer = Trainer(model, applicants(8 * batch, features), [Precision(), curve], batch)
    trainer.run(steps)
    print("loss %.5f -> %.5f" % (curve.values[0].item(), curve.values[-5:].mean().item()))


if __name__ == "__main__":
    main()
