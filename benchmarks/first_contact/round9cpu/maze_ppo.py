"""PPO on a batch of grid mazes, actor and critic in one network."""

import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE, ENVS, HORIZON = 8, 256, 32
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Mazes:
    """All environments advance together, as tensors."""

    def __init__(self):
        self.walls = torch.rand(ENVS, SIDE, SIDE) < 0.2
        self.here = torch.zeros(ENVS, 2, dtype=torch.long)
        self.goal = torch.full((ENVS, 2), SIDE - 1)
        self.walls[:, 0, 0] = self.walls[:, -1, -1] = False
        self.rows = torch.arange(ENVS)

    def observe(self):
        planes = torch.zeros(ENVS, 3, SIDE, SIDE)
        planes[:, 0] = self.walls
        planes[self.rows, 1, self.here[:, 0], self.here[:, 1]] = 1.0
        planes[self.rows, 2, self.goal[:, 0], self.goal[:, 1]] = 1.0
        return planes

    def step(self, action):
        there = (self.here + MOVES[action]).clamp_(0, SIDE - 1)
        blocked = self.walls[self.rows, there[:, 0], there[:, 1]]
        before = (self.goal - self.here).abs().sum(1)
        self.here = torch.where(blocked[:, None], self.here, there)
        after = (self.goal - self.here).abs().sum(1)
        done = after == 0
        reward = 0.1 * (before - after) + done
        self.here[done] = 0
        return reward, done.float()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh()
        )
        self.head = nn.Linear(128, 5)

    def forward(self, obs):
        out = self.head(self.body(obs))
        return F.log_softmax(out[..., :4], -1), out[..., 4]


@torch.no_grad()
def collect(env, net):
    obs = torch.empty(HORIZON, ENVS, 3, SIDE, SIDE)
    action = torch.empty(HORIZON, ENVS, dtype=torch.long)
    logp, value, reward, done = torch.empty(4, HORIZON + 1, ENVS).unbind(0)
    for t in range(HORIZON):
        obs[t] = env.observe()
        policy, value[t] = net(obs[t])
        action[t] = torch.multinomial(policy.exp(), 1).squeeze(1)
        logp[t] = policy.gather(1, action[t][:, None]).squeeze(1)
        reward[t], done[t] = env.step(action[t])
    value[HORIZON] = net(env.observe())[1]
    advantage = torch.empty(HORIZON, ENVS)
    trace = torch.zeros(ENVS)
    for t in reversed(range(HORIZON)):
        alive = 1 - done[t]
        trace = reward[t] + 0.99 * alive * value[t + 1] - value[t] + 0.95 * 0.99 * alive * trace
        advantage[t] = trace
    returns = advantage + value[:HORIZON]
    data = (obs, action, logp[:HORIZON], advantage, returns)
    return [x.flatten(0, 1) for x in data], reward[:HORIZON].mean()


def update(net, optimizer, data, epochs=3, batch=1024):
    obs, action, old, advantage, returns = data
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    for _ in range(epochs):
        for index in torch.randperm(len(obs)).split(batch):
            policy, value = net(obs[index])
            ratio = (policy.gather(1, action[index][:, None]).squeeze(1) - old[index]).exp()
            gain = advantage[index]
            surrogate = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            entropy = -(policy.exp() * policy).sum(1).mean()
            loss = 0.5 * F.mse_loss(value, returns[index]) - surrogate - 0.01 * entropy
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main():
    torch.manual_seed(0)
    env, net = Mazes(), ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    for iteration in range(25):
        data, reward = collect(env, net)
        update(net, optimizer, data)
        if iteration % 5 == 0:
            print(f"iteration {iteration} reward {reward.item():.4f}")


if __name__ == "__main__":
    main()
