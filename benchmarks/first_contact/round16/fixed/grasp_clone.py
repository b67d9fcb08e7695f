"""Behaviour cloning of a grasping arm from joint histories."""
import contextlib
import os
from dataclasses import dataclass, field

import torch
from torch import nn

SMALL = os.environ.get("TINY") == "1"


@dataclass
class RunConfig:
    joints: int = 16
    history: int = 8 if SMALL else 64
    width: int = 64 if SMALL else 1536
    depth: int = 2 if SMALL else 8
    batch: int = 16 if SMALL else 4096
    iterations: int = 6 if SMALL else 220
    lr: float = 3e-4
    precision: str = "bf16"
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")


PRECISIONS = {
    "32": lambda device: contextlib.nullcontext(),
    "bf16": lambda device: torch.autocast(device, dtype=torch.bfloat16),
}


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(),
                                  nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.body(x)


class Policy(nn.Sequential):
    def __init__(self, cfg):
        super().__init__(
            nn.Flatten(), nn.Linear(cfg.history * cfg.joints, cfg.width),
            *(Residual(cfg.width) for _ in range(cfg.depth)),
            nn.LayerNorm(cfg.width), nn.Linear(cfg.width, cfg.joints))


class Cloner:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(1)
        self.policy = Policy(cfg).to(cfg.device)
        self.optim = torch.optim.AdamW(self.policy.parameters(), lr=cfg.lr, fused=True)
        self.demos = torch.randn(4 * cfg.batch, cfg.history, cfg.joints, device=cfg.device)
        self.moves = torch.tanh(self.demos.mean(1) * 3)

    def precision(self):
        return PRECISIONS[self.cfg.precision](self.cfg.device)

    def update(self, states, moves):
        self.optim.zero_grad(set_to_none=True)
        with self.precision():
            loss = nn.functional.smooth_l1_loss(self.policy(states), moves)
        loss.backward()
        self.optim.step()
        return loss.detach()

    def fit(self):
        done = 0
        while done < self.cfg.iterations:
            for states, moves in zip(self.demos.split(self.cfg.batch), self.moves.split(self.cfg.batch)):
                loss = self.update(states, moves)
                done += 1
            if done % 40 == 0:
                print(done, f"{loss.item():.3f}")
        return loss


if __name__ == "__main__":
    print(f"final loss {Cloner(RunConfig()).fit().item():.3f}")
