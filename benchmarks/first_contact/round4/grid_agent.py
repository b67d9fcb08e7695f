"""Proximal policy optimisation on a batched grid world that lives on the device."""
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    worlds: int = 1024
    horizon: int = 8
    size: int = 16
    width: int = 128
    epochs: int = 2
    minibatches: int = 4
    updates: int = 70
    clip: float = 0.2
    gamma: float = 0.98


class Grid:
    MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))

    def __init__(self, n, size, device):
        self.n, self.size = n, size
        self.moves = torch.tensor(self.MOVES, device=device)
        self.pos = torch.randint(size, (n, 2), device=device)
        self.goal = torch.randint(size, (n, 2), device=device)

    def observe(self):
        return torch.cat([self.pos, self.goal], 1).float() / self.size

    def step(self, action):
        self.pos = (self.pos + self.moves[action]).clamp_(0, self.size - 1)
        hit = (self.pos == self.goal).all(1)
        self.goal = torch.where(hit[:, None], torch.randint_like(self.goal, self.size), self.goal)
        return hit.float() - 0.01


class ActorCritic(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.pi, self.v = nn.Linear(width, 4), nn.Linear(width, 1)

    def forward(self, obs):
        h = self.body(obs)
        return F.log_softmax(self.pi(h), -1), self.v(h).squeeze(-1)


@torch.no_grad()
def collect(net, env, s):
    obs, act, logp, val, rew = [], [], [], [], []
    for _ in range(s.horizon):
        o = env.observe()
        lp, v = net(o)
        a = (lp - torch.empty_like(lp).exponential_().log_()).argmax(-1)
        obs.append(o), act.append(a), val.append(v), logp.append(lp.gather(1, a[:, None]).squeeze(1))
        rew.append(env.step(a))
    ret, running = [], net(env.observe())[1]
    for r in reversed(rew):
        running = r + s.gamma * running
        ret.append(running)
    returns = torch.stack(ret[::-1]).flatten()
    adv = returns - torch.stack(val).flatten()
    return torch.cat(obs), torch.cat(act), torch.cat(logp), returns, (adv - adv.mean()) / (adv.std() + 1e-6)


def improve(net, opt, batch, s):  # flaw: launch-bound|small-batch
    obs, act, old, ret, adv = batch
    lp, v = net(obs)
    new = lp.gather(1, act[:, None]).squeeze(1)
    ratio = (new - old).exp()
    gain = torch.minimum(ratio * adv, ratio.clamp(1 - s.clip, 1 + s.clip) * adv).mean()
    entropy = -(lp.exp() * lp).sum(-1).mean()
    loss = -gain + 0.5 * F.mse_loss(v, ret) - 0.01 * entropy
    loss.backward()
    opt.step()
    opt.zero_grad()
    return loss.detach()


def main():
    s = Settings(worlds=16, horizon=4, width=16, epochs=1, minibatches=2, updates=30) if os.environ.get("SMALL") == "1" \
        else Settings()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    env = Grid(s.worlds, s.size, device)
    net = ActorCritic(s.width).to(device)  # flaw: launch-bound|small-batch
    opt = torch.optim.Adam(net.parameters(), lr=3e-4, fused=True)
    for update in range(s.updates):
        data = collect(net, env, s)
        for _ in range(s.epochs):
            order = torch.randperm(s.worlds * s.horizon, device=device)
            for part in order.chunk(s.minibatches):
                loss = improve(net, opt, [t[part] for t in data], s)
        if update % 10 == 0:
            print(update, round(loss.item(), 4), round(data[3].mean().item(), 4))


if __name__ == "__main__":
    main()
