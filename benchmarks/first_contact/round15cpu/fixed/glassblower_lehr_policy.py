"""Clones the annealing decisions of glassblowers from kiln telemetry."""
import functools
import os

import torch
from torch import nn

SMALL = os.environ.get("TINY") == "1"

OPTIMIZERS = {
    "sgd": functools.partial(torch.optim.SGD, lr=0.02, momentum=0.9, fused=True),
    "adamw": functools.partial(torch.optim.AdamW, lr=2e-4, weight_decay=0.02, fused=True),
}


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + nn.functional.silu(self.inner(self.norm(x)))


class Apprentice:
    def __init__(self, width, depth, optimizer="adamw"):
        self.policy = nn.Sequential(
            nn.Linear(40, width), *(Residual(width) for _ in range(depth)), nn.Linear(width, 6)
        )
        self.optimizer = OPTIMIZERS[optimizer](self.policy.parameters())

    def imitate(self, telemetry, action):
        loss = nn.functional.smooth_l1_loss(self.policy(telemetry), action)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main():
    torch.manual_seed(8)
    apprentice = Apprentice(64 if SMALL else 1152, 6)
    telemetry = torch.randn(512, 40)
    action = telemetry[:, :6].tanh() * telemetry[:, 6:12].sigmoid()
    for shift in range(4 if SMALL else 110):
        rows = torch.arange(shift * 32, shift * 32 + 32) % 512
        loss = apprentice.imitate(telemetry[rows], action[rows])
        if shift % 25 == 0:
            print(shift, f"{loss.item():.4f}")
    print("done", f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
