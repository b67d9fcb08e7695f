"""Learns a vector field from orbits, integrated with fourth-order Runge-Kutta."""
import os
import torch
from torch import nn

small = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Field(nn.Module):
    def __init__(self, state, width):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(state, width), nn.Linear(width, width), nn.Linear(width, state)

    def forward(self, y):
        return self.c(torch.tanh(self.b(torch.tanh(self.a(y)))))


class Flow(nn.Module):
    def __init__(self, state, width, steps, dt):
        super().__init__()
        self.field, self.steps, self.dt = Field(state, width), steps, dt

    def advance(self, y):
        f, h = self.field, self.dt
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def forward(self, y):
        path = []
        for _ in range(self.steps):
            y = self.advance(y)
            path.append(y)
        return torch.stack(path, 1)


def orbits(n, steps, dt):
    phase = torch.rand(n, 1, device=device) * 6.283
    t = torch.arange(steps + 1, device=device) * dt + phase
    return torch.stack([t.cos(), t.sin(), -t.sin(), t.cos()], -1)


def main():
    batch, width, steps, iters = (8, 8, 4, 30) if small else (256, 64, 20, 100)
    truth = orbits(batch * 4, steps, 0.05)
    flow = Flow(4, width, steps, 0.05).to(device)  # flaw: launch-bound
    opt = torch.optim.Adam(flow.parameters(), lr=3e-3, fused=True)
    for it in range(iters):
        rows = truth[it % 4 * batch : (it % 4 + 1) * batch]
        loss = (flow(rows[:, 0]) - rows[:, 1:]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("error", loss.item())


if __name__ == "__main__":
    main()
