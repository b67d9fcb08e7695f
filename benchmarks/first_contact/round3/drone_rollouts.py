"""Policy gradient on a batch of simulated drones that live on the device."""
import os
import torch
from torch import nn
from torch.distributions import Normal

SMALL = os.environ.get("SMALL") == "1"
DRONES, SENSE, ACT, HIDDEN, HORIZON, UPDATES = (8, 16, 4, 32, 6, 30) if SMALL else (4096, 512, 8, 512, 96, 60)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Drones:
    """A linear system with noise; the reward is the negative distance to the origin."""

    def __init__(self):
        self.a = torch.eye(SENSE, device=device) * 0.98 + 0.002 * torch.randn(SENSE, SENSE, device=device)
        self.b = 0.1 * torch.randn(ACT, SENSE, device=device)
        self.x = torch.randn(DRONES, SENSE, device=device)

    def step(self, action):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            move = self.x @ self.a + action @ self.b
        self.x = (move.float() + 0.01 * torch.randn_like(self.x)).clamp_(-5, 5)
        return self.x, -self.x.square().mean(1)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(SENSE, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())
        self.mean, self.value = nn.Linear(HIDDEN, ACT), nn.Linear(HIDDEN, 1)
        self.log_std = nn.Parameter(torch.full((ACT,), -1.0))

    def forward(self, x):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            h = self.net(x)
            mean, value = self.mean(h), self.value(h)
        return Normal(mean.float(), self.log_std.exp(), validate_args=False), value.float().squeeze(-1)


@torch.no_grad()
def collect(world, policy):
    seen = torch.empty(0, DRONES, SENSE, device=device)
    actions, rewards = [], []
    x = world.x
    for _ in range(HORIZON):
        dist, _ = policy(x)
        action = dist.loc + dist.scale * torch.randn_like(dist.loc)
        seen = torch.cat([seen, x.unsqueeze(0)])  # flaw: cat-in-loop
        x, reward = world.step(action)
        actions.append(action)
        rewards.append(reward)
    return seen, torch.stack(actions), torch.stack(rewards)


def discounted(rewards, gamma=0.97):
    weights = gamma ** torch.arange(HORIZON, device=device)
    later = torch.flip(torch.cumsum(torch.flip(rewards * weights[:, None], [0]), 0), [0])
    return later / weights[:, None]


torch.manual_seed(0)
world, policy = Drones(), Policy().to(device)
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4, fused=True)
scores = []
for update in range(UPDATES):
    seen, actions, rewards = collect(world, policy)
    returns = discounted(rewards)
    for part in range(2):
        half = slice(part, None, 2)
        dist, value = policy(seen[half])
        advantage = returns[half] - value
        chosen = dist.log_prob(actions[half]).sum(-1)
        loss = -(chosen * advantage.detach()).mean() + 0.5 * advantage.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scores.append(rewards.mean())
print("reward", torch.stack(scores)[-5:].mean().item())
