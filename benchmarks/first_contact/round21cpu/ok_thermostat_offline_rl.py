"""TD3 with behaviour cloning (TD3+BC) on logged decisions of a greenhouse thermostat."""
import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    states: int = 24
    actions: int = 4
    hidden: int = 256
    batch: int = 256
    discount: float = 0.98
    follow: float = 0.005
    noise: float = 0.2
    clip: float = 0.5
    weight: float = 2.5
    updates: int = 1600
    report: int = 100
    logged: int = 50_000
    seed: int = 314


def mlp(inputs, hidden, outputs):
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


class Actor(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.net = mlp(s.states, s.hidden, s.actions)

    def forward(self, state):
        return self.net(state).tanh()


class Critic(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.first = mlp(s.states + s.actions, s.hidden, 1)
        self.second = mlp(s.states + s.actions, s.hidden, 1)

    def forward(self, state, action):
        both = torch.cat([state, action], dim=1)
        return self.first(both), self.second(both)


class Log:
    """Transitions in tensors."""

    def __init__(self, s):
        g = torch.Generator().manual_seed(s.seed)
        drift = torch.eye(s.states) * 0.9 + torch.randn(s.states, s.states, generator=g) * 0.02
        push = torch.randn(s.actions, s.states, generator=g) * 0.3
        self.state = torch.randn(s.logged, s.states, generator=g)
        self.action = (-self.state @ push.T * 0.3 + 0.4 * torch.randn(s.logged, s.actions, generator=g)).clamp(-1, 1)
        self.following = self.state @ drift + self.action @ push + 0.05 * torch.randn(self.state.shape, generator=g)
        self.reward = -self.following.square().mean(1, keepdim=True) - 0.1 * self.action.square().mean(1, keepdim=True)
        self.generator = g

    def draw(self, size):
        rows = torch.randint(len(self.state), (size,), generator=self.generator)
        return self.state[rows], self.action[rows], self.reward[rows], self.following[rows]


class Learner:
    def __init__(self, s):
        self.s = s
        self.actor, self.critic = Actor(s), Critic(s)
        self.slow_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.slow_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-4, fused=True)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-4, fused=True)
        self.actor_weights = list(self.actor.parameters())
        self.fast = [*self.actor.parameters(), *self.critic.parameters()]
        self.slow = [*self.slow_actor.parameters(), *self.slow_critic.parameters()]

    @torch.no_grad()
    def wanted(self, reward, following):
        noise = (torch.randn(len(reward), self.s.actions) * self.s.noise).clamp(-self.s.clip, self.s.clip)
        action = (self.slow_actor(following) + noise).clamp(-1, 1)
        return reward + self.s.discount * torch.minimum(*self.slow_critic(following, action))

    def update_critic(self, state, action, reward, following):
        wanted = self.wanted(reward, following)
        first, second = self.critic(state, action)
        loss = F.mse_loss(first, wanted) + F.mse_loss(second, wanted)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()
        return loss.detach()

    def update_actor(self, state, action):
        chosen = self.actor(state)
        value = self.critic.first(torch.cat([state, chosen], dim=1))
        scale = self.s.weight / value.detach().abs().mean()
        loss = F.mse_loss(chosen, action) - scale * value.mean()
        self.actor_optimizer.zero_grad()
        loss.backward(inputs=self.actor_weights)
        self.actor_optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def follow(self):
        torch._foreach_lerp_(self.slow, self.fast, self.s.follow)


def main(s):
    torch.manual_seed(s.seed)
    log, learner = Log(s), Learner(s)
    sums = torch.zeros(2)
    for update in range(1, s.updates + 1):
        state, action, reward, following = log.draw(s.batch)
        critic = learner.update_critic(state, action, reward, following)
        actor = learner.update_actor(state, action)
        learner.follow()
        sums += torch.stack([critic, actor])
        if update % s.report == 0:
            critic, actor = (sums / s.report).tolist()
            print(f"update {update}: critic {critic:.4f} actor {actor:.4f}")
            sums.zero_()


if __name__ == "__main__":
    main(Settings())
