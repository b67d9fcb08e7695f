"""REINFORCE on thousands of point-mass agents simulated on the device."""
import os
import torch
from torch import nn
import torch.nn.functional as F


class PointMass:
    """Vectorised environment: accelerate towards the origin without overshooting."""

    def __init__(self, n, device):
        self.n, self.device = n, device

    def reset(self):
        self.pos = torch.rand(self.n, 2, device=self.device) * 2 - 1
        self.vel = torch.zeros(self.n, 2, device=self.device)
        return self.view()

    def view(self):
        return torch.cat((self.pos, self.vel), 1)

    def step(self, force):
        self.vel = torch.add(0.9 * self.vel, force, alpha=0.05)
        self.pos = self.pos + self.vel
        return self.view(), -self.pos.norm(dim=1)


class Policy(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
                                  nn.Linear(width, width), nn.GELU(), nn.Linear(width, 2))
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, obs):
        return self.body(obs).float()

    def log_prob(self, obs, act):
        z = (act - self(obs)) * torch.exp(-self.log_std)
        return -0.5 * z.square().sum(-1) - self.log_std.sum()


def returns_matrix(horizon, gamma, device):
    gap = torch.arange(horizon, device=device)
    gap = gap[None, :] - gap[:, None]
    return torch.where(gap >= 0, gamma ** gap.clamp(min=0).float(), 0.0)


def main(agents, horizon, width, rounds):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    env, policy = PointMass(agents, device), Policy(width).to(device)
    opt = torch.optim.Adam(policy.parameters(), lr=3e-4, fused=True)
    discount = returns_matrix(horizon, 0.97, device)
    obs_log = torch.empty(horizon, agents, 4, device=device)
    act_log = torch.empty(horizon, agents, 2, device=device)
    rew_log = torch.empty(horizon, agents, device=device)
    for r in range(rounds):
        obs = env.reset()
        with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
            std = policy.log_std.exp()
            noise = torch.randn(horizon, agents, 2, device=device)
            for t in range(horizon):
                act = torch.addcmul(policy(obs), std, noise[t])
                obs_log[t], act_log[t] = obs, act
                obs, rew_log[t] = env.step(act)
        ret = discount @ rew_log
        adv = (ret - ret.mean(1, keepdim=True)) / (ret.std(1, keepdim=True) + 1e-6)
        with torch.autocast(device, dtype=torch.bfloat16):
            logp = policy.log_prob(obs_log.flatten(0, 1), act_log.flatten(0, 1))
        loss = -(logp * adv.flatten()).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if r % 25 == 0:
            print("round", r, "mean return", ret[0].mean().item())


if __name__ == "__main__":
    if os.environ.get("SMALL") == "1":
        main(agents=16, horizon=6, width=16, rounds=30)
    else:
        main(agents=16384, horizon=20, width=768, rounds=90)
