"""Policy gradient on a vectorised tracking task, with generalised advantages from a closure."""
import torch
from torch import nn


class Tracking:
    """Many one-dimensional carts chase a moving target."""

    def __init__(self, envs):
        self.envs = envs
        self.state = torch.randn(envs, 4)

    def step(self, action):
        position, speed, target, drift = self.state.unbind(1)
        speed = 0.9 * speed + 0.1 * action
        position = position + speed
        target = target + 0.05 * drift
        self.state = torch.stack((position, speed, target, drift), 1).clamp_(-5, 5)
        return -(position - target).abs()


class ActorCritic(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh())
        self.mean, self.value = nn.Linear(hidden, 1), nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h).squeeze(-1), self.value(h).squeeze(-1)


def make_advantage(gamma, lam, horizon):
    power = torch.arange(horizon)
    lag = power[None, :] - power[:, None]
    decay = torch.triu((gamma * lam) ** lag.clamp(min=0).float())

    def advantage(rewards, values):
        delta = rewards + gamma * values[1:] - values[:-1]
        return decay @ delta

    return advantage


@torch.no_grad()
def rollout(env, net, horizon):
    states, actions, rewards = [], [], []
    for _ in range(horizon):
        states.append(env.state)
        mean, _ = net(env.state)
        action = mean + 0.3 * torch.randn_like(mean)
        rewards.append(env.step(action))
        actions.append(action)
    states.append(env.state)
    return torch.stack(states), torch.stack(actions), torch.stack(rewards)


def main(envs=768, horizon=20, iterations=750):
    torch.manual_seed(51)
    env, net = Tracking(envs), ActorCritic()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    advantage = make_advantage(0.97, 0.9, horizon)
    score = torch.zeros(())
    for _ in range(iterations):
        states, actions, rewards = rollout(env, net, horizon)
        mean, value = net(states)
        with torch.no_grad():
            adv = advantage(rewards, value.detach())
            target = adv + value[:-1]
            weight = (adv - adv.mean()) / adv.std()
        policy = (weight * (actions - mean[:-1]).square()).mean() * 5.0
        loss = policy + 0.5 * nn.functional.mse_loss(value[:-1], target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        score.lerp_(rewards.mean(), 0.1)
    print("score", round(float(score), 2))


if __name__ == "__main__":
    main()
