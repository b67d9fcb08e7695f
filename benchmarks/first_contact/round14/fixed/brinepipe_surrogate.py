"""Surrogate for pressure drop in brine pipelines: a wide residual perceptron on dimensionless numbers."""
import os
from collections import OrderedDict

import torch
import torch.nn.functional as F

TINY = bool(int(os.environ.get("TINY", "0")))
HW = "cuda" if torch.cuda.is_available() else "cpu"

NONLINEARITIES = {}


def nonlinearity(cls):
    NONLINEARITIES[cls.__name__.lower()] = cls
    return cls


@nonlinearity
class Smooth(torch.nn.Module):
    """Self-gated and smooth: pressure has continuous derivatives."""

    def forward(self, h):
        return F.mish(h)


@nonlinearity
class Hard(torch.nn.ReLU):
    pass


class Residual(torch.nn.Module):
    def __init__(self, width, kind):
        super().__init__()
        self.path = torch.nn.Sequential(OrderedDict(
            enter=torch.nn.Linear(width, width), bend=NONLINEARITIES[kind](), leave=torch.nn.Linear(width, width)))

    def forward(self, h):
        return h + self.path(h)


def build(width, depth, kind):
    return torch.nn.Sequential(torch.nn.Linear(16, width), NONLINEARITIES[kind](),
                               *(Residual(width, kind) for _ in range(depth)), torch.nn.Linear(width, 1))


def pipes(rows, gen):
    x = torch.randn(rows, 16, generator=gen, device=HW)
    y = (x[:, :4].prod(1) + torch.sin(3 * x[:, 5]) * x[:, 6]).unsqueeze(1)
    return x, y


class Trainer:
    config = dict(width=64, depth=2, rows=128, steps=5) if TINY else dict(width=2048, depth=6, rows=32768, steps=250)

    def __init__(self, **override):
        self.c = {**self.config, **override}
        torch.manual_seed(9)
        torch.set_float32_matmul_precision("high")
        self.net = build(self.c["width"], self.c["depth"], "smooth").to(HW)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-4, fused=True)
        self.gen = torch.Generator(device=HW).manual_seed(7)
        self.table = pipes(self.c["rows"] * 4, self.gen)

    def step(self, n):
        rows = self.c["rows"]
        at = n % 4 * rows
        x, y = (t[at:at + rows] for t in self.table)
        with torch.autocast(HW, dtype=torch.bfloat16):
            out = self.net(x)
        loss = F.mse_loss(out.float(), y)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()

    def fit(self):
        seen = [self.step(n) for n in range(self.c["steps"])]
        return torch.stack(seen)


if __name__ == "__main__":
    curve = Trainer().fit()
    print("mse %.3f -> %.3f" % (curve[0].item(), curve[-1].item()))
