"""Collects rollouts of a frozen policy in a batched simulator and reports discounted returns."""
import argparse
import os

import torch
import torch.nn as nn


def parse():
    p = argparse.ArgumentParser()
    quick = bool(os.environ.get("SMALL"))
    p.add_argument("--envs", type=int, default=16 if quick else 8192)
    p.add_argument("--obs", type=int, default=8 if quick else 192)
    p.add_argument("--horizon", type=int, default=6 if quick else 96)
    p.add_argument("--rounds", type=int, default=30 if quick else 60)
    p.add_argument("--gamma", type=float, default=0.99)
    return p.parse_args()


class Arena:
    def __init__(self, n, dim, device):
        g = torch.Generator(device).manual_seed(0)
        self.mix = torch.randn(dim, dim, device=device, generator=g) / dim**0.5
        self.push = torch.randn(16, dim, device=device, generator=g) / 4
        self.n, self.dim, self.device = n, dim, device

    def reset(self):
        self.x = torch.randn(self.n, self.dim, device=self.device)
        return self.x

    def step(self, action):
        self.x = torch.tanh(self.x @ self.mix + action @ self.push)
        return self.x, -self.x.square().mean(1, keepdim=True)


class Recorder:
    def __init__(self, first):
        self.obs = [first]
        self.rewards = []

    def add(self, obs, reward):
        self.obs.append(obs)
        self.rewards.append(reward)

    def finish(self, gamma):
        rewards = torch.cat(self.rewards, 1)
        weights = gamma ** torch.arange(rewards.shape[1], device=rewards.device)
        return torch.stack(self.obs, 1), rewards @ weights


@torch.inference_mode()
def rollout(policy, arena, horizon, gamma):
    obs = arena.reset()
    rec = Recorder(obs)
    for _ in range(horizon):
        obs, reward = arena.step(policy(obs))
        rec.add(obs, reward)
    return rec.finish(gamma)


def main():
    args = parse()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(args.obs, 256), nn.Tanh(), nn.Linear(256, 16), nn.Tanh()).to(device)
    arena = Arena(args.envs, args.obs, device)
    spread = torch.zeros((), device=device)
    for r in range(args.rounds):
        obs, returns = rollout(policy, arena, args.horizon, args.gamma)
        spread += obs.std() + returns.std()
        if r % 20 == 0:
            print(f"round {r}: return {returns.mean().item():.3f}")
    print(f"spread {spread.item() / args.rounds:.3f}")


if __name__ == "__main__":
    main()
