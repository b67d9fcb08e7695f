"""A deep mixer over the sites of a crystal that learns its energy with the Lion optimizer."""
import os

import torch
from torch import nn
from torch.optim import Optimizer

TINY = "TINY" in os.environ


class Lion(Optimizer):
    """Chen et al. 2023: the sign of an interpolation between the momentum and the gradient."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, (b1, b2), wd = group["lr"], group["betas"], group["weight_decay"]
            for p in group["params"]:  # flaw: parameter-loop
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                m = state["momentum"]
                p.mul_(1 - lr * wd)  # flaw: parameter-loop
                update = m.mul(b1).add_(p.grad, alpha=1 - b1).sign_()  # flaw: parameter-loop
                p.add_(update, alpha=-lr)  # flaw: parameter-loop
                m.mul_(b2).add_(p.grad, alpha=1 - b2)  # flaw: parameter-loop


class SiteBlock(nn.Module):
    def __init__(self, sites, width):
        super().__init__()
        self.across = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.between = nn.Sequential(nn.Linear(sites, sites), nn.SiLU(), nn.Linear(sites, sites))
        self.within = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.between(self.across(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(x)


class Crystal(nn.Module):
    def __init__(self, sites, width, depth):
        super().__init__()
        self.species = nn.Linear(16, width)
        self.blocks = nn.Sequential(*(SiteBlock(sites, width) for _ in range(depth)))
        self.energy = nn.Linear(width, 1)

    def forward(self, x):
        return self.energy(self.blocks(self.species(x)).mean(1)).squeeze(-1)


def main(sites=64, width=256, depth=40, batch=288, steps=300):
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Crystal(sites, width, depth).to(device)
    optimizer = Lion(model.parameters(), lr=3e-5)
    for step in range(steps):
        crystals = torch.randn(batch, sites, 16, device=device)
        energies = crystals.square().mean((1, 2))
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(crystals).float(), energies)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 60 == 0:
            print("step", step, "loss", f"{loss.item():.4f}", flush=True)
    print("loss", f"{loss.item():.4f}")


if __name__ == "__main__":
    main(*(8, 16, 2, 4, 4) if TINY else ())
