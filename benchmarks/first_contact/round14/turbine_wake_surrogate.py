"""A residual network that maps inflow and layout of a wind farm to the power of each turbine."""
import argparse
import os
import random

import numpy as np
import torch
from torch import nn

TINY = "TINY" in os.environ


def make_repeatable(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.set_float32_matmul_precision("highest")  # flaw: fp32-matmul


class Residual(nn.Sequential):
    def __init__(self, width, inner):
        super().__init__(nn.LayerNorm(width), nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))

    def forward(self, x):
        return x + super().forward(x)


class FarmNet(nn.Module):
    def __init__(self, inputs, turbines, width, depth):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.body = nn.Sequential(*[Residual(width, 2 * width) for _ in range(depth)])
        self.leave = nn.Linear(width, turbines)

    def forward(self, x):
        return self.leave(self.body(self.enter(x)))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = FarmNet(192, 80, args.width, args.depth).to(self.device)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=2e-4, fused=True)
        self.inflow = torch.randn(args.rows, 192, device=self.device)
        self.power = torch.tanh(self.inflow[:, :80] * self.inflow[:, 80:160])

    def batches(self):
        for _ in range(self.args.steps):
            at = torch.randint(self.args.rows, (self.args.batch,), device=self.device)
            yield self.inflow[at], self.power[at]

    def one(self, inflow, power):
        error = nn.functional.smooth_l1_loss(self.net(inflow), power)  # flaw: fp32-matmul
        self.opt.zero_grad(set_to_none=True)
        error.backward()
        self.opt.step()
        return error.detach()

    def fit(self):
        for number, batch in enumerate(self.batches()):
            error = self.one(*batch)
            if number % 50 == 0:
                print(number, round(error.item(), 4), flush=True)
        print("final", round(error.item(), 4))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64 if TINY else 2048)
    parser.add_argument("--depth", type=int, default=2 if TINY else 6)
    parser.add_argument("--batch", type=int, default=32 if TINY else 4096)
    parser.add_argument("--rows", type=int, default=512 if TINY else 200_000)
    parser.add_argument("--steps", type=int, default=5 if TINY else 220)
    args = parser.parse_args()
    make_repeatable(11)
    Trainer(args).fit()
