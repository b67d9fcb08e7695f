"""Offline reinforcement learning (TD3 with behaviour cloning) on logged data of a robot arm."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
LOGGED, BATCH, HIDDEN, UPDATES = (400_000, 16384, 2048, 300) if CUDA else (500, 32, 32, 4)
OBS, ACT, STACK = 48, 8, 4
GAMMA, TAU, ALPHA, POLICY_NOISE = 0.98, 0.005, 2.5, 0.2


class LoggedData:
    """Observations in order of time; a state is a stack of the last few."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.obs = rng.standard_normal((LOGGED, OBS), dtype=np.float32)
        self.action = np.tanh(rng.standard_normal((LOGGED, ACT), dtype=np.float32))
        self.reward = rng.standard_normal(LOGGED, dtype=np.float32)
        self.rng = rng
        self.window = np.arange(STACK + 1)

    def sample(self, n):
        start = self.rng.integers(0, LOGGED - STACK - 1, n)
        frames = self.obs[start[:, None] + self.window]
        last = start + STACK - 1
        parts = [torch.from_numpy(x) for x in (frames, self.action[last], self.reward[last])]
        if CUDA:
            parts = [x.pin_memory() for x in parts]
        frames, action, reward = [x.to(DEVICE, non_blocking=True) for x in parts]
        return frames[:, :-1].flatten(1), action, reward, frames[:, 1:].flatten(1)


def mlp(cin, cout):
    return nn.Sequential(
        nn.Linear(cin, HIDDEN), nn.ReLU(inplace=True), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(inplace=True), nn.Linear(HIDDEN, cout)
    )


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(OBS * STACK + ACT, 1), mlp(OBS * STACK + ACT, 1)

    def forward(self, state, action):
        x = torch.cat([state, action], 1)
        return self.q1(x).squeeze(1), self.q2(x).squeeze(1)


class Agent:
    def __init__(self):
        self.actor = nn.Sequential(mlp(OBS * STACK, ACT), nn.Tanh()).to(DEVICE)
        self.critic = Critic().to(DEVICE)
        self.target_actor, self.target_critic = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-4, fused=True)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-4, fused=True)
        self.critic_losses, self.actor_losses = [], []

    def autocast(self):
        return torch.autocast(DEVICE.type, dtype=torch.bfloat16)

    def update(self, batch, update_actor):
        state, action, reward, next_state = batch
        with torch.no_grad(), self.autocast():
            noise = (torch.randn_like(action) * POLICY_NOISE).clamp_(-0.5, 0.5)
            next_action = (self.target_actor(next_state) + noise).clamp(-1, 1)
            q1, q2 = self.target_critic(next_state, next_action)
            target = reward + GAMMA * torch.minimum(q1, q2).float()
        with self.autocast():
            q1, q2 = self.critic(state, action)
        critic_loss = F.mse_loss(q1.float(), target) + F.mse_loss(q2.float(), target)
        self.critic_opt.zero_grad(set_to_none=True)
        critic_loss.backward()
        self.critic_opt.step()
        self.critic_losses.append(critic_loss.detach())
        if update_actor:
            with self.autocast():
                proposal = self.actor(state)
                q = self.critic.q1(torch.cat([state, proposal], 1)).float()
            weight = ALPHA / q.detach().abs().mean()
            actor_loss = F.mse_loss(proposal.float(), action) - weight * q.mean()
            self.actor_opt.zero_grad(set_to_none=True)
            actor_loss.backward()
            self.actor_opt.step()
            self.actor_losses.append(actor_loss.detach())
            self.follow(self.target_actor, self.actor)
            self.follow(self.target_critic, self.critic)

    @torch.no_grad()
    def follow(self, target, source):
        torch._foreach_lerp_(list(target.parameters()), list(source.parameters()), TAU)


if __name__ == "__main__":
    torch.manual_seed(0)
    data, agent = LoggedData(), Agent()
    for update in range(UPDATES):
        agent.update(data.sample(BATCH), update_actor=update % 2 == 1)
    print(f"critic loss {float(agent.critic_losses[-1]):.4f}, actor loss {float(agent.actor_losses[-1]):.4f}")
