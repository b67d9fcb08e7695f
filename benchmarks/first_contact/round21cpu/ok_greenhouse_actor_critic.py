"""TD3-like control of a greenhouse from logged climate data (off-line actor-critic)."""
import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Options:
    state: int = 40
    action: int = 8
    width: int = 384
    rows: int = 128
    updates: int = 2000
    discount: float = 0.95
    keep: float = 0.995
    lr: float = 3e-4
    report: int = 200


def mlp(inputs, width, outputs):
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
    )


class Critic(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.net = mlp(o.state + o.action, o.width, 1)

    def forward(self, state, action):
        return self.net(torch.cat([state, action], dim=1)).squeeze(1)


class Learner:
    def __init__(self, o):
        self.o = o
        self.actor = nn.Sequential(mlp(o.state, o.width, o.action), nn.Tanh())
        self.critic = Critic(o)
        self.slow_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.slow_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_params = list(self.actor.parameters())
        self.fast = [*self.actor_params, *self.critic.parameters()]
        self.slow = [*self.slow_actor.parameters(), *self.slow_critic.parameters()]
        self.actor_optimizer = torch.optim.Adam(self.actor_params, lr=o.lr, fused=True)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=o.lr, fused=True)

    def update(self, state, action, reward, following):
        with torch.no_grad():
            target = reward + self.o.discount * self.slow_critic(following, self.slow_actor(following))
        error = F.mse_loss(self.critic(state, action), target)
        self.critic_optimizer.zero_grad()
        error.backward()
        self.critic_optimizer.step()

        value = self.critic(state, self.actor(state)).mean()
        self.actor_optimizer.zero_grad()
        value.neg().backward(inputs=self.actor_params)
        self.actor_optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.slow, self.fast, 1 - self.o.keep)
        return torch.stack([error.detach(), value.detach()])


def climate_log(o, count):
    state = torch.randn(count, o.state)
    action = torch.rand(count, o.action) * 2 - 1
    push = torch.randn(o.action, o.state) / o.action**0.5
    following = 0.8 * state + 0.3 * action @ push
    reward = 1 - following[:, :8].square().mean(1)
    return state, action, reward, following


def main(o=Options()):
    torch.manual_seed(51)
    log = climate_log(o, 20_000)
    learner = Learner(o)
    sums = torch.zeros(2)
    for update in range(1, o.updates + 1):
        rows = torch.randint(len(log[0]), (o.rows,))
        sums += learner.update(*(column[rows] for column in log))
        if update % o.report == 0:
            error, value = (sums / o.report).tolist()
            print(f"{update:5d}  critic {error:.5f}  value {value:+.4f}", flush=True)
            sums.zero_()


if __name__ == "__main__":
    main()
