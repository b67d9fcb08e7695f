"""PPO on a vectorised swing-up task. The rollout is sequential by nature: an action needs its state."""
from dataclasses import dataclass

import torch
from torch import nn

torch.set_num_threads(1)
UPDATES = 200


@dataclass
class Hyper:
    envs: int = 48
    horizon: int = 24
    epochs: int = 3
    clip: float = 0.2
    gamma: float = 0.98
    lam: float = 0.95


class SwingUp:
    def __init__(self, n, gen):
        self.theta = 3.14 + 0.2 * torch.randn(n, generator=gen)
        self.omega = torch.zeros(n)

    def obs(self):
        return torch.stack([self.theta.cos(), self.theta.sin(), self.omega / 8], 1)

    def step(self, u):
        u = u.clamp(-2, 2)
        self.omega = (self.omega + 0.05 * (15 * self.theta.sin() + 3 * u)).clamp(-8, 8)
        self.theta = self.theta + 0.05 * self.omega
        return self.theta.cos() - 0.01 * u.square()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self.v = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self.log_std = nn.Parameter(torch.zeros(()))

    def dist(self, obs):
        return torch.distributions.Normal(self.pi(obs).squeeze(-1), self.log_std.exp(), validate_args=False)


@torch.no_grad()
def collect(env, agent, hp):
    obs, act, rew = [], [], []
    for _ in range(hp.horizon):
        o = env.obs()
        a = agent.dist(o).sample()
        obs.append(o)
        act.append(a)
        rew.append(env.step(a))
    obs, act, rew = torch.stack(obs), torch.stack(act), torch.stack(rew)
    value = agent.v(torch.cat([obs, env.obs()[None]])).squeeze(-1)
    adv, run = torch.empty_like(rew), torch.zeros(hp.envs)
    for t in range(hp.horizon - 1, -1, -1):
        run = rew[t] + hp.gamma * value[t + 1] - value[t] + hp.gamma * hp.lam * run
        adv[t] = run
    logp = agent.dist(obs).log_prob(act)
    return [x.flatten(0, 1) for x in (obs, act, logp, adv, adv + value[:-1])], rew.mean()


def main():
    hp = Hyper()
    torch.manual_seed(1)
    env, agent = SwingUp(hp.envs, torch.Generator().manual_seed(1)), Agent()
    opt = torch.optim.Adam(agent.parameters(), lr=1e-3, fused=True)
    for update in range(1, UPDATES + 1):
        (obs, act, old, adv, ret), reward = collect(env, agent, hp)
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        for _ in range(hp.epochs):
            ratio = (agent.dist(obs).log_prob(act) - old).exp()
            surrogate = torch.minimum(ratio * adv, ratio.clamp(1 - hp.clip, 1 + hp.clip) * adv)
            loss = -surrogate.mean() + 0.5 * nn.functional.mse_loss(agent.v(obs).squeeze(-1), ret)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if update % 100 == 0:
            print(f"update {update}: reward {reward.item():.4f}")


main()
