"""TD3 with behaviour cloning from a logged humanoid data set (numpy replay memory)."""

import copy
import random
from collections import defaultdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
OBS, ACT = 240, 21
HIDDEN = 3072 if CUDA else 32
BATCH = 8192 if CUDA else 32
MEMORY = 150_000 if CUDA else 500
UPDATES = 300 if CUDA else 20


class ReplayMemory:
    def __init__(self, size, seed=0):
        self.rng = np.random.default_rng(seed)
        self.obs = self.rng.standard_normal((size + 1, OBS), dtype=np.float32)
        self.act = np.tanh(self.rng.standard_normal((size, ACT), dtype=np.float32))
        self.rew = self.rng.standard_normal((size, 1), dtype=np.float32)
        self.size = size

    def sample(self, n):
        rows = self.rng.integers(0, self.size, n)
        parts = (self.obs[rows], self.act[rows], self.rew[rows], self.obs[rows + 1])
        tensors = [torch.from_numpy(part) for part in parts]
        if CUDA:
            tensors = [t.pin_memory() for t in tensors]
        return [t.to(DEVICE, non_blocking=True) for t in tensors]


def mlp(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(HIDDEN, outputs),
    )


class Agent:
    def __init__(self, gamma=0.99, tau=0.005, alpha=2.5, policy_noise=0.2):
        self.gamma, self.tau, self.alpha, self.policy_noise = gamma, tau, alpha, policy_noise
        self.actor = nn.Sequential(mlp(OBS, ACT), nn.Tanh()).to(DEVICE)
        self.critics = nn.ModuleList([mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)]).to(DEVICE)
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critics_target = copy.deepcopy(self.critics).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-4, fused=CUDA)
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=3e-4, fused=CUDA)
        self.online = [*self.actor.parameters(), *self.critics.parameters()]
        self.slow = [*self.actor_target.parameters(), *self.critics_target.parameters()]
        self.log = defaultdict(list)

    def amp(self):
        return torch.autocast(DEVICE.type, torch.bfloat16, enabled=CUDA)

    def critic_loss(self, obs, act, rew, next_obs):
        with torch.no_grad():
            noise = (torch.randn_like(act) * self.policy_noise).clamp_(-0.5, 0.5)
            next_act = (self.actor_target(next_obs) + noise).clamp(-1, 1)
            pair = torch.cat((next_obs, next_act), 1)
            goal = rew + self.gamma * torch.minimum(*[c(pair) for c in self.critics_target]).float()
        pair = torch.cat((obs, act), 1)
        return sum(F.mse_loss(c(pair).float(), goal) for c in self.critics)

    def actor_loss(self, obs, act):
        policy = self.actor(obs)
        q = self.critics[0](torch.cat((obs, policy), 1)).float()
        return -self.alpha * q.mean() / q.abs().mean().detach() + F.mse_loss(policy.float(), act)

    def update(self, batch):
        obs, act, rew, next_obs = batch
        with self.amp():
            critic_loss = self.critic_loss(obs, act, rew, next_obs)
        self.critic_opt.zero_grad(set_to_none=True)
        critic_loss.backward()
        self.critic_opt.step()

        self.critics.requires_grad_(False)
        with self.amp():
            actor_loss = self.actor_loss(obs, act)
        self.actor_opt.zero_grad(set_to_none=True)
        actor_loss.backward()
        self.actor_opt.step()
        self.critics.requires_grad_(True)

        with torch.no_grad():
            torch._foreach_lerp_(self.slow, self.online, self.tau)
        self.log["critic"].append(critic_loss.detach())
        self.log["actor"].append(actor_loss.detach())

    def summary(self):
        return {name: torch.stack(values).mean().item() for name, values in self.log.items()}


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    memory, agent = ReplayMemory(MEMORY), Agent()
    for _ in range(UPDATES):
        agent.update(memory.sample(BATCH))
    print({name: round(value, 4) for name, value in agent.summary().items()})
