"""Surrogate for pipe flow: a deep residual network learns pressure fields. Hooks watch the gradients."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = bool(os.environ.get("TINY"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class GradWatch:
    """Keeps the size of every gradient, to see layers that die."""

    def __init__(self, net):
        self.named = dict(net.named_parameters())
        self.history = []

    def after_backward(self):
        sizes = {name: p.grad.norm().item() for name, p in self.named.items()}  # flaw: sync-in-step
        self.history.append(sizes)

    def weakest(self):
        mean = {n: sum(h[n] for h in self.history) / len(self.history) for n in self.named}
        name = min(mean, key=mean.get)
        return name, mean[name]


class Res(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(F.silu(self.a(self.norm(x))))


class Surrogate(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.lift = nn.Linear(8, width)
        self.body = nn.Sequential(*(Res(width) for _ in range(depth)))
        self.drop = nn.Linear(width, 4)

    def forward(self, x):
        return self.drop(self.body(self.lift(x)))


class Session:
    def __init__(self, net, hooks):
        self.net, self.hooks = net, hooks
        self.opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)

    def step(self, x, y):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            out = self.net(x)
        loss = F.mse_loss(out.float(), y)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        for hook in self.hooks:
            hook.after_backward()
        self.opt.step()
        return loss.detach().clone()


def main():
    torch.manual_seed(2)
    width, depth, rows, steps = (16, 2, 16, 5) if TINY else (1024, 24, 8192, 750)
    net = Surrogate(width, depth).to(DEVICE)
    watch = GradWatch(net)
    session = Session(net, [watch])
    curve = []
    for _ in range(steps):
        x = torch.randn(rows, 8, device=DEVICE)
        y = torch.sin(x[:, :4] * x[:, 4:])
        curve.append(session.step(x, y))
    name, size = watch.weakest()
    print(f"loss {torch.stack(curve).mean().item():.3f}; weakest {name} {size:.4f}")


if __name__ == "__main__":
    main()
