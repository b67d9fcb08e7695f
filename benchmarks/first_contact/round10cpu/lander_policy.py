"""Policy gradient for a vectorised moon lander written in tensors."""

import torch
from torch import nn
from torch.distributions import Categorical


class Landers:
    """Many landers at once: height, speed and fuel."""

    def __init__(self, count):
        self.count = count

    def reset(self):
        self.height = 1 + torch.rand(self.count)
        self.speed = torch.zeros(self.count)
        self.fuel = torch.ones(self.count)
        return self.observe()

    def observe(self):
        return torch.stack([self.height, self.speed, self.fuel], dim=1)

    def step(self, thrust):
        power = thrust.float() / 3 * (self.fuel > 0)
        flying = (self.height > 0).float()
        self.fuel = (self.fuel - 0.02 * power * flying).clamp_(min=0)
        self.speed = self.speed + (0.04 * power - 0.02) * flying
        landed = (self.height + self.speed <= 0).float() * flying
        reward = landed * (1 - 20 * self.speed.abs()) - 0.002 * flying
        self.height = (self.height + self.speed).clamp_(min=0)
        return self.observe(), reward


class Policy(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.action = nn.Linear(width, 4)
        self.value = nn.Linear(width, 1)

    def forward(self, observation):
        h = self.body(observation)
        return self.action(h), self.value(h).squeeze(-1)


@torch.no_grad()
def play(env, policy, length):
    observations, actions, rewards = [], [], []
    observation = env.reset()
    for _ in range(length):
        action = Categorical(logits=policy(observation)[0]).sample()
        observations.append(observation)
        actions.append(action)
        observation, reward = env.step(action)
        rewards.append(reward)
    rewards = torch.stack(rewards)
    returns = rewards.flip(0).cumsum(0).flip(0)
    return torch.stack(observations), torch.stack(actions), returns


def main():
    torch.manual_seed(0)
    torch.distributions.Distribution.set_default_validate_args(False)
    env, policy = Landers(128), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3, fused=True)
    for update in range(1, 121):
        observations, actions, returns = play(env, policy, length=48)
        logits, values = policy(observations)
        chosen = Categorical(logits=logits)
        advantage = returns - values.detach()
        policy_loss = -(chosen.log_prob(actions) * advantage).mean()
        value_loss = (values - returns).square().mean()
        loss = policy_loss + 0.5 * value_loss - 0.01 * chosen.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 30 == 0:
            print(f"update {update}: return {returns[0].mean().item():.4f}")


if __name__ == "__main__":
    main()
