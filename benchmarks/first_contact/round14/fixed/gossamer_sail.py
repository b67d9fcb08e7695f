"""Imitates a controller of a solar sail, with an optimiser of our own."""
import os
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"


class HeavyBall(torch.optim.Optimizer):
    """Nesterov's momentum with decay of the weights and a bound on each entry of the gradient."""

    def __init__(self, params, lr=0.01, mass=0.9, decay=1e-4, bound=1.0):
        super().__init__(params, dict(lr=lr, mass=mass, decay=decay, bound=bound))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, mass = group["lr"], group["mass"]
            params = group["params"]
            for p in params:
                state = self.state[p]
                if "ball" not in state:
                    state["ball"] = torch.zeros_like(p)
            balls = [self.state[p]["ball"] for p in params]
            push = torch._foreach_clamp_min([p.grad for p in params], -group["bound"])
            torch._foreach_clamp_max_(push, group["bound"])
            torch._foreach_add_(push, params, alpha=group["decay"])
            torch._foreach_mul_(balls, mass)
            torch._foreach_add_(balls, push)
            torch._foreach_add_(push, balls, alpha=mass)
            torch._foreach_add_(params, push, alpha=-lr)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def imitate(width=32 if TINY else 512, layers=3 if TINY else 40, batch=16 if TINY else 2048, steps=5 if TINY else 400):
    torch.manual_seed(6)
    pilot = nn.Sequential(nn.Linear(12, width), *[Layer(width) for _ in range(layers)], nn.Linear(width, 4)).to(DEV)
    ball = HeavyBall(pilot.parameters(), lr=0.002)
    teacher = torch.randn(12, 4, device=DEV) / 12 ** 0.5
    total = torch.zeros((), device=DEV)
    for _ in range(steps):
        state = torch.randn(batch, 12, device=DEV)
        with torch.autocast(DEV, torch.bfloat16):
            torque = pilot(state)
        loss = nn.functional.mse_loss(torque.float(), torch.tanh(state @ teacher))
        loss.backward()
        ball.step()
        ball.zero_grad()
        total += loss.detach()
    print(f"mean imitation error {total.item() / steps:.4f}")


if __name__ == "__main__":
    imitate()
