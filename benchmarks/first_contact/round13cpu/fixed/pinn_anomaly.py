"""Physics-informed net for the damped oscillator u'' + 2 d u' + w^2 u = 0, configured by a dict."""
import torch
from torch import nn

CONFIG = {
    "model": {"width": 48, "depth": 5},
    "problem": {"damping": 1.5, "omega": 12.0, "points": 512},
    "optim": {"lr": 2e-3, "steps": 600},
    "debug": {"anomaly": False, "print_every": 0},
}


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


def mlp(width, depth):
    layers = [nn.Linear(1, width), Sine()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), Sine()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


class Oscillator:
    def __init__(self, damping, omega, points):
        self.damping, self.omega, self.points = damping, omega, points

    def sample(self):
        return torch.rand(self.points, 1).requires_grad_()

    def residual(self, net, t):
        u = net(t)
        (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
        (ddu,) = torch.autograd.grad(du.sum(), t, create_graph=True)
        return (ddu + 2 * self.damping * du + self.omega ** 2 * u) / self.omega ** 2

    def boundary(self, net, t0):
        u0 = net(t0)
        (du0,) = torch.autograd.grad(u0.sum(), t0, create_graph=True)
        return (u0 - 1.0).square().mean() + (du0 / self.omega).square().mean()


class Solver:
    def __init__(self, config):
        torch.manual_seed(5)
        self.steps = config["optim"]["steps"]
        self.print_every = config["debug"]["print_every"]
        self.problem = Oscillator(**config["problem"])
        self.net = mlp(**config["model"])
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=config["optim"]["lr"], fused=True)
        self.t0 = torch.zeros(1, 1, requires_grad=True)
        torch.autograd.set_detect_anomaly(config["debug"]["anomaly"])

    def step(self):
        self.optimizer.zero_grad()
        r = self.problem.residual(self.net, self.problem.sample())
        loss = r.square().mean() + self.problem.boundary(self.net, self.t0)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self):
        best = torch.full((), float("inf"))
        for i in range(1, self.steps + 1):
            loss = self.step()
            best = torch.minimum(best, loss)
            if self.print_every and i % self.print_every == 0:
                print(i, float(loss))
        return float(best)


if __name__ == "__main__":
    print("best loss", round(Solver(CONFIG).run(), 5))
