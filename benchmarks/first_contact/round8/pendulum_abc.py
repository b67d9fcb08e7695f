"""Approximate Bayesian computation: infer pendulum parameters by simulating a neural surrogate of its dynamics."""
import argparse

import torch
import torch.nn as nn

torch.set_float32_matmul_precision("high")


class Surrogate(nn.Module):
    """d(state)/dt from state (4) and parameters (3)."""

    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(7, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 4)
        )

    def forward(self, state, theta):
        return self.net(torch.cat([state, theta], dim=-1))


class Simulator:
    def __init__(self, field, x0, dt, steps):
        self.field, self.x0, self.dt, self.steps = field, x0, dt, steps

    def rk4(self, x, theta):
        h = self.dt
        k1 = self.field(x, theta)
        k2 = self.field(torch.add(x, k1, alpha=0.5 * h), theta)
        k3 = self.field(torch.add(x, k2, alpha=0.5 * h), theta)
        k4 = self.field(torch.add(x, k3, alpha=h), theta)
        return x + (h / 6.0) * (k1 + 2.0 * (k2 + k3) + k4)

    def __call__(self, theta):
        x = self.x0.expand(len(theta), 4)
        path = torch.empty(self.steps, len(theta), 4, device=theta.device)
        for i in range(self.steps):
            x = self.rk4(x, theta)  # flaw: launch-bound
            path[i] = x
        return path


def propose(population, weights_scale, n):
    pick = torch.randint(len(population), (n,), device=population.device)
    return population[pick] + weights_scale * torch.randn(n, 3, device=population.device)


@torch.inference_mode()
def infer(simulate, observed, rounds, n, keep):
    dev = observed.device
    particles = 2.0 * torch.rand(n, 3, device=dev)
    best = torch.full((keep,), float("inf"), device=dev)
    survivors = particles[:keep]
    for r in range(rounds):
        path = simulate(particles)  # flaw: launch-bound
        distance = (path - observed).square().mean(dim=(0, 2))
        pool = torch.cat([best, distance])
        best, order = torch.topk(pool, keep, largest=False)
        survivors = torch.cat([survivors, particles])[order]
        particles = propose(survivors, survivors.std(0) * 0.7 + 1e-3, n)
        if (r + 1) % max(rounds // 5, 1) == 0:
            print(f"round {r + 1}: distance {best.mean().item():.5f}, theta {survivors.mean(0).tolist()}")
    return survivors


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--particles", type=int, default=4096 if cuda else 64)
    ap.add_argument("--keep", type=int, default=512 if cuda else 16)
    ap.add_argument("--rounds", type=int, default=400 if cuda else 5)
    ap.add_argument("--steps", type=int, default=60 if cuda else 8)
    ap.add_argument("--width", type=int, default=128 if cuda else 16)
    args = ap.parse_args()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    field = Surrogate(args.width).to(device).eval()
    x0 = torch.tensor([0.4, 0.0, -0.2, 0.0], device=device)
    truth = torch.tensor([[0.9, 1.1, 0.6]], device=device)
    with torch.inference_mode():
        observed = Simulator(field, x0, 0.05, args.steps)(truth)
    simulate = Simulator(field, x0, 0.05, args.steps)
    posterior = infer(simulate, observed, args.rounds, args.particles, args.keep)
    print("posterior mean", posterior.mean(0).tolist())


if __name__ == "__main__":
    main()
