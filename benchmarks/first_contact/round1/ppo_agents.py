"""Proximal policy optimisation on a simulated environment that lives on the device."""
import numpy as np
import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, obs=256, acts=18, hidden=1024):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.pi, self.v = nn.Linear(hidden, acts), nn.Linear(hidden, 1)

    def forward(self, o):
        h = self.body(o)
        return self.pi(h).float(), self.v(h).squeeze(-1).float()


def advantages(rewards, values, gamma=0.99, lam=0.95):
    r, v = rewards.cpu().numpy(), values.detach().cpu().numpy()  # flaw: sync-in-step
    out, last = np.zeros_like(r), 0.0
    for t in reversed(range(len(r) - 1)):
        delta = r[t] + gamma * v[t + 1] - v[t]
        last = delta + gamma * lam * last
        out[t] = last
    return torch.as_tensor(out, device=rewards.device)


class PPO:
    def __init__(self, envs=512, horizon=128):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = ActorCritic().to(self.device)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=3e-4, fused=True)
        self.envs, self.horizon = envs, horizon
        self.world = torch.randn(256, 256, device=self.device) / 16

    def rollout(self):
        obs = torch.randn(self.horizon, self.envs, 256, device=self.device) @ self.world
        return obs, obs[..., 0].tanh()

    def update(self):
        obs, rewards = self.rollout()
        with torch.autocast(self.device, torch.bfloat16):
            logits, values = self.net(obs)
        adv = advantages(rewards, values)
        dist = torch.distributions.Categorical(logits=logits, validate_args=False)
        actions = logits.detach().argmax(-1)
        loss = -(dist.log_prob(actions) * adv).mean() + 0.5 * nn.functional.mse_loss(values, adv + values.detach())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def learn(self, updates):
        for _ in range(updates):
            self.update()


PPO().learn(320)
