"""Actor-critic for a two-link reacher; a rendering process reads the weights from a file."""
import pathlib
import tempfile

import torch
from torch import nn

UPDATES = 900


class Reacher:
    def __init__(self, n, gen):
        self.n, self.gen = n, gen
        self.joint = torch.zeros(n, 2)
        self.goal = torch.rand(n, 2, generator=gen) * 2 - 1

    def observe(self):
        return torch.cat([self.joint.sin(), self.joint.cos(), self.goal], 1)

    def apply(self, torque):
        self.joint = self.joint + 0.2 * torque.clamp(-1, 1)
        a, b = self.joint[:, 0], self.joint.sum(1)
        tip = torch.stack([a.cos() + b.cos(), a.sin() + b.sin()], 1) / 2
        return -(tip - self.goal).square().sum(1)


class ActorCritic(nn.Module):
    def __init__(self, hidden=384):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mean, self.value = nn.Linear(hidden, 2), nn.Linear(hidden, 1)
        self.log_std = nn.Parameter(torch.full((2,), -0.7))

    def forward(self, obs):
        h = self.trunk(obs)
        return torch.distributions.Normal(self.mean(h), self.log_std.exp(), validate_args=False), self.value(h).squeeze(-1)


class Viewer:
    """Hands the weights to the rendering process through a file."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "latest.pt"

    def publish(self, update, model, opt):
        torch.save({"update": update, "model": model.state_dict(), "opt": opt.state_dict()}, self.path)


def learn(folder):
    torch.manual_seed(23)
    gen = torch.Generator().manual_seed(23)
    env, net, viewer = Reacher(64, gen), ActorCritic(), Viewer(folder)
    opt = torch.optim.Adam(net.parameters(), lr=3e-4, fused=True)
    for update in range(1, UPDATES + 1):
        obs = env.observe()
        dist, value = net(obs)
        action = dist.sample()
        reward = env.apply(action)
        advantage = reward - value
        loss = -(dist.log_prob(action).sum(1) * advantage.detach()).mean() + 0.5 * advantage.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        viewer.publish(update, net, opt)  # flaw: none-yet(checkpoint-every-step)
        if update % 300 == 0:
            print(f"update {update}: mean reward {reward.mean().item():.4f}")


with tempfile.TemporaryDirectory() as scratch:
    learn(scratch)
