"""Evolution strategies for a flock of gliders: all policies of a generation fly at the same time.

theta  -> pairs of mirrored perturbations -> rollouts in a linearised model of the glider -> ranks -> Adam
"""
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Plan:
    generations: int = 400
    pairs: int = 512
    flights: int = 512
    horizon: int = 32
    state: int = 64
    hidden: int = 64
    controls: int = 16
    sigma: float = 0.05
    rate: float = 0.02
    seed: int = 2024
    report: int = 50


class Glider:
    """A stable random linear system with saturation, and gusts that are the same for all policies."""

    def __init__(self, plan, device):
        g = torch.Generator().manual_seed(plan.seed)
        drift = torch.randn(plan.state, plan.state, generator=g) / plan.state**0.5
        self.drift = (0.9 * torch.eye(plan.state) + 0.25 * drift).to(device, torch.bfloat16)
        steer = torch.randn(plan.state, plan.controls, generator=g) / plan.controls**0.5
        self.steer = steer.to(device, torch.bfloat16)
        self.starts = torch.randn(plan.flights, plan.state, generator=g).to(device, torch.bfloat16)

    def reset(self, policies):
        return self.starts.expand(policies, -1, -1)

    def advance(self, state, control):
        after = F.linear(state, self.drift)
        after.flatten(0, 1).addmm_(control.flatten(0, 1), self.steer.t())
        return after.tanh_()


class Policies:
    """Three layers for each member of the population, cut from one flat row of numbers each."""

    def __init__(self, plan):
        self.shapes = [(plan.state, plan.hidden), (plan.hidden, plan.hidden), (plan.hidden, plan.controls)]
        self.sizes = [a * b for a, b in self.shapes]
        self.count = sum(self.sizes)

    def cut(self, rows):
        pieces = rows.to(torch.bfloat16).split(self.sizes, dim=1)
        return [piece.unflatten(1, shape) for piece, shape in zip(pieces, self.shapes)]

    @staticmethod
    def act(layers, state):
        first, second, last = layers
        h = torch.bmm(state, first).tanh_()
        h = torch.bmm(h, second).tanh_()
        return torch.bmm(h, last)


class Evolution:
    def __init__(self, plan, device):
        self.plan, self.device = plan, device
        self.policies = Policies(plan)
        self.glider = Glider(plan, device)
        self.random = torch.Generator().manual_seed(plan.seed + 1)  # flaw: tensor-made-on-host
        start = torch.randn(self.policies.count, generator=torch.Generator().manual_seed(plan.seed)) * 0.1
        self.theta = torch.nn.Parameter(start.to(device))
        self.optimizer = torch.optim.Adam([self.theta], lr=plan.rate, fused=True)

    def perturbations(self):
        shape = (self.plan.pairs, self.policies.count)
        return torch.randn(shape, generator=self.random).to(self.device)  # flaw: tensor-made-on-host

    def fly(self, rows):
        layers = self.policies.cut(rows)
        state = self.glider.reset(len(rows))
        cost = torch.zeros(len(rows), device=self.device)
        for _ in range(self.plan.horizon):
            state = self.glider.advance(state, self.policies.act(layers, state))
            cost += torch.linalg.vector_norm(state, dim=(1, 2), dtype=torch.float32)
        return cost / self.plan.horizon

    @torch.no_grad()
    def generation(self):
        noise = self.perturbations()
        shift = self.plan.sigma * noise
        cost = self.fly(torch.cat([self.theta + shift, self.theta - shift]))
        up, down = cost.chunk(2)
        gap = (up - down) / (up - down).std()
        self.theta.grad = torch.mv(noise.t(), gap) / (self.plan.pairs * self.plan.sigma)
        self.optimizer.step()
        return cost.mean()


def main(plan=Plan()):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    evolution = Evolution(plan, device)
    for number in range(plan.generations):
        cost = evolution.generation()
        if (number + 1) % plan.report == 0:
            print(f"generation {number + 1}: mean cost {cost.item():.3f}")


if __name__ == "__main__":
    main()
