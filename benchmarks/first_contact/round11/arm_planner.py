"""Sampling-based planner (MPPI) for a planar arm: every control step simulates a batch of futures."""
import argparse
import math

import torch


class ArmModel:
    """Three links, joint torques, viscous friction, soft joint limits."""

    def __init__(self, device, dt=0.02):
        self.dt = dt
        self.inertia = torch.tensor([1.6, 0.9, 0.4], device=device)
        self.friction = torch.tensor([0.8, 0.5, 0.3], device=device)
        self.gravity = torch.tensor([9.0, 4.0, 1.2], device=device)
        self.limit = torch.tensor([2.8, 2.4, 2.0], device=device)

    def advance(self, angle, speed, torque):
        pull = self.gravity * torch.cos(angle.cumsum(-1))
        over = torch.relu(angle.abs() - self.limit) * torch.sign(angle)
        force = torque - self.friction * speed - pull - 60.0 * over
        speed = speed + self.dt * force / self.inertia
        return angle + self.dt * speed, speed

    def tip(self, angle):
        heading = angle.cumsum(-1)
        return torch.stack([heading.cos().sum(-1), heading.sin().sum(-1)], -1)


class Planner:
    def __init__(self, model, samples, horizon, device, temperature=0.3, noise=4.0):
        self.model, self.samples, self.horizon = model, samples, horizon
        self.temperature, self.noise = temperature, noise
        self.plan = torch.zeros(horizon, 3, device=device)

    def evaluate(self, angle, speed, torques, goal):  # flaw: launch-bound|unfused-elementwise
        """Cost of each sampled torque sequence (samples x horizon x 3)."""
        angle = angle.expand(self.samples, 3)
        speed = speed.expand(self.samples, 3)
        cost = torch.zeros(self.samples, device=angle.device)
        for t in range(self.horizon):
            angle, speed = self.model.advance(angle, speed, torques[:, t])
            miss = (self.model.tip(angle) - goal).square().sum(-1)
            cost = cost + miss + 0.002 * speed.square().sum(-1) + 1e-5 * torques[:, t].square().sum(-1)
        return cost

    def act(self, angle, speed, goal):
        torques = self.plan + self.noise * torch.randn(self.samples, self.horizon, 3, device=angle.device)
        cost = self.evaluate(angle, speed, torques, goal)  # flaw: launch-bound|unfused-elementwise
        weight = torch.softmax((cost.min() - cost) / self.temperature, 0)
        best = torch.einsum("s,shj->hj", weight, torques)
        torch.cat([best[1:], best[-1:]], out=self.plan)
        return best[0]


def goal_at(step, device, cache={}):
    """The target circles once per 200 control steps."""
    if not cache:
        angle = torch.linspace(0, 2 * math.pi, 201, device=device)[:-1]
        cache["path"] = 1.8 * torch.stack([angle.cos(), angle.sin()], 1)
    return cache["path"][step % 200]


@torch.inference_mode()
def control(args):
    device = torch.device(args.device)
    torch.manual_seed(args.seed)
    model = ArmModel(device)
    planner = Planner(model, args.samples, args.horizon, device)
    angle = torch.tensor([0.3, 0.2, -0.1], device=device)
    speed = torch.zeros(3, device=device)
    misses = torch.zeros(args.steps, device=device)
    for step in range(args.steps):
        goal = goal_at(step, device)
        torque = planner.act(angle, speed, goal)
        angle, speed = model.advance(angle, speed, torque)
        misses[step] = (model.tip(angle) - goal).norm()
    return misses.cpu()


if __name__ == "__main__":
    gpu = torch.cuda.is_available()
    cli = argparse.ArgumentParser()
    cli.add_argument("--device", default="cuda" if gpu else "cpu")
    cli.add_argument("--samples", type=int, default=4096 if gpu else 64)
    cli.add_argument("--horizon", type=int, default=32 if gpu else 8)
    cli.add_argument("--steps", type=int, default=300 if gpu else 20)
    cli.add_argument("--seed", type=int, default=1)
    misses = control(cli.parse_args())
    print(f"distance to goal: start {misses[0].item():.3f}, mean {misses.mean().item():.3f}")
