"""PPO on a point-mass swarm that is simulated on the device in many copies."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


@dataclass
class Args:
    envs: int = 16_384 if CUDA else 16
    horizon: int = 8 if CUDA else 4
    hidden: int = 2048 if CUDA else 32
    iterations: int = 80 if CUDA else 4
    minibatches: int = 4
    epochs: int = 2
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    lr: float = 3e-4


class Swarm:
    """Ten masses per environment that shall come to rest at their targets."""

    def __init__(self, envs):
        self.state = torch.randn(envs, 40, device=DEVICE)
        self.matrix = torch.eye(40, device=DEVICE) + 0.05 * torch.randn(40, 40, device=DEVICE) / 40**0.5
        self.input = 0.1 * torch.randn(20, 40, device=DEVICE)

    def step(self, action):
        self.state = torch.addmm(action.tanh() @ self.input, self.state, self.matrix, beta=1.0).clamp_(-5, 5)
        return self.state, -self.state.square().mean(1)


class ActorCritic(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(40, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
        )
        self.heads = nn.Linear(hidden, 24)
        self.log_std = nn.Parameter(torch.full((20,), -0.5))

    def forward(self, obs):
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=CUDA):
            out = self.heads(self.trunk(obs))
        out = out.float()
        return Normal(out[:, :20], self.log_std.exp(), validate_args=False), out[:, 20]


@torch.no_grad()
def collect(env, model, args):
    obs, act, logp, value, reward = [], [], [], [], []
    state = env.state
    for _ in range(args.horizon):
        policy, v = model(state)
        a = policy.sample()
        obs.append(state)
        act.append(a)
        logp.append(policy.log_prob(a).sum(1))
        value.append(v)
        state, r = env.step(a)
        reward.append(r)
    value.append(model(state)[1])
    gain = torch.zeros_like(v)
    advantages = []
    for t in reversed(range(args.horizon)):
        delta = torch.add(reward[t], value[t + 1], alpha=args.gamma) - value[t]
        gain = torch.add(delta, gain, alpha=args.gamma * args.lam)
        advantages.append(gain)
    advantage = torch.cat(advantages[::-1])
    value = torch.cat(value[:-1])
    mean = torch.stack(reward).mean()
    return torch.cat(obs), torch.cat(act), torch.cat(logp), advantage, advantage + value, mean


def main():
    args = Args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    env, model = Swarm(args.envs), ActorCritic(args.hidden).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=CUDA)
    rewards = torch.zeros(args.iterations, device=DEVICE)
    for iteration in range(args.iterations):
        obs, act, old_logp, advantage, target, rewards[iteration] = collect(env, model, args)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for _ in range(args.epochs):
            order = torch.randperm(len(obs), device=DEVICE)
            for rows in order.chunk(args.minibatches):
                policy, value = model(obs[rows])
                ratio = (policy.log_prob(act[rows]).sum(1) - old_logp[rows]).exp()
                gain = advantage[rows]
                surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - args.clip, 1 + args.clip) * gain)
                loss = F.mse_loss(value, target[rows]) - surrogate.mean()
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
    first, last = rewards[0].item(), rewards[-1].item()
    print(f"mean reward {first:.3f} -> {last:.3f}")


if __name__ == "__main__":
    main()
