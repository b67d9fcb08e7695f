"""Infers temperature profiles of a plasma from line-integrated soft X-ray channels.

Trained on synthetic shots; the chords pass through a circular cross-section.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass
class MomentState:
    mean: Tensor
    square: Tensor


class Moments:
    """Adam with decoupled decay: first and second moments of the gradient of every weight."""

    def __init__(self, weights, lr: float, b1: float = 0.9, b2: float = 0.999, floor: float = 1e-8, decay=1e-2):
        self.weights = list(weights)
        self.lr, self.b1, self.b2, self.floor, self.decay = lr, b1, b2, floor, decay
        self.states = [MomentState(torch.zeros_like(w), torch.zeros_like(w)) for w in self.weights]
        self.t = 0

    def zero_grad(self) -> None:
        for w in self.weights:
            w.grad = None

    @torch.no_grad()
    def step(self) -> None:
        self.t += 1
        c1, c2 = 1 - self.b1**self.t, 1 - self.b2**self.t
        for w, state in zip(self.weights, self.states):  # flaw: parameter-loop
            w.mul_(1 - self.lr * self.decay)  # flaw: parameter-loop
            state.mean.lerp_(w.grad, 1 - self.b1)  # flaw: parameter-loop
            state.square.mul_(self.b2).addcmul_(w.grad, w.grad, value=1 - self.b2)  # flaw: parameter-loop
            root = (state.square / c2).sqrt_().add_(self.floor)  # flaw: parameter-loop
            w.addcdiv_(state.mean, root, value=-self.lr / c1)  # flaw: parameter-loop


class ProfileNet(nn.Module):
    def __init__(self, channels: int, radii: int, width: int, depth: int):
        super().__init__()
        self.enter = nn.Linear(channels, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.leave = nn.Linear(width, radii)
        for layer in self.hidden:
            nn.init.normal_(layer.weight, std=0.3 / width**0.5)

    def forward(self, lines: Tensor) -> Tensor:
        h = torch.tanh(self.enter(lines))
        for layer in self.hidden:
            h = h + torch.relu(layer(h))
        return self.leave(h)


class Diagnostic:
    """Line integrals of a profile along the chords."""

    def __init__(self, channels: int, radii: int, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.rho = torch.linspace(0, 1, radii)
        impact = torch.linspace(0, 0.95, channels)[:, None]
        inside = (self.rho[None] ** 2 - impact**2).clamp(min=0).sqrt()
        self.geometry = inside.diff(dim=1, prepend=inside[:, :1]) * 2

    def shots(self, n: int) -> tuple[Tensor, Tensor]:
        peak = 1 + torch.rand(n, 1, generator=self.gen)
        shape = 1 + 2 * torch.rand(n, 1, generator=self.gen)
        pedestal = 0.1 * torch.rand(n, 1, generator=self.gen)
        profile = pedestal + peak * (1 - self.rho**2).clamp(min=0) ** shape
        lines = profile @ self.geometry.T
        return lines + 0.01 * torch.randn(lines.shape, generator=self.gen), profile


def main(updates: int = 1800, batch: int = 48) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(100)
    diagnostic = Diagnostic(channels=32, radii=50, seed=101)
    lines, profiles = diagnostic.shots(6000)
    net = ProfileNet(32, 50, width=64, depth=48)
    solver = Moments(net.parameters(), lr=3e-4)  # flaw: parameter-loop
    for update in range(1, updates + 1):
        rows = torch.randint(len(lines), (batch,), generator=diagnostic.gen)
        loss = nn.functional.mse_loss(net(lines[rows]), profiles[rows])
        solver.zero_grad()
        loss.backward()
        solver.step()
        if update % 360 == 0:
            print(f"update {update}: rms error {math.sqrt(loss.item()):.4f}")


if __name__ == "__main__":
    main()
