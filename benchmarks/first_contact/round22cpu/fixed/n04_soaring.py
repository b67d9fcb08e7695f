# Off-policy control of a fleet of gliders in made-up thermals (DDPG with two critics).
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

OBS, ACT = 24, 6
GLIDERS, BATCH, WIDTH = 64, 256, 256
GAMMA, TAU = 0.98, 0.01


class Thermals:
    """Linear drift with a reward for lift; all gliders fly at once."""

    def __init__(self, gen):
        self.drift = 0.95 * torch.linalg.qr(torch.randn(OBS, OBS, generator=gen))[0]
        self.push = torch.randn(ACT, OBS, generator=gen) / math.sqrt(ACT)
        self.lift = torch.randn(OBS, generator=gen) / math.sqrt(OBS)
        self.gen = gen
        self.state = torch.randn(GLIDERS, OBS, generator=gen)

    def step(self, action):
        gust = 0.1 * torch.randn(GLIDERS, OBS, generator=self.gen)
        before = self.state
        self.state = torch.addmm(before @ self.drift, action, self.push, alpha=0.3) + gust
        reward = torch.tanh(self.state @ self.lift) - 0.05 * action.square().sum(1)
        return before, action, reward, self.state


class Ring:
    def __init__(self, size, gen):
        self.size, self.gen, self.at, self.full = size, gen, 0, 0
        self.parts = [torch.zeros(size, n) for n in (OBS, ACT, 1, OBS)]

    def push(self, s, a, r, n):
        here = slice(self.at, self.at + len(s))
        for part, rows in zip(self.parts, (s, a, r[:, None], n)):
            part[here] = rows
        self.at = (self.at + len(s)) % self.size
        self.full = min(self.size, self.full + len(s))

    def sample(self, count):
        rows = torch.randint(self.full, (count,), generator=self.gen)
        return [part[rows] for part in self.parts]


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(OBS + ACT, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))

    def forward(self, s, a):
        return self.q(torch.cat([s, a], 1))


class Agent:
    def __init__(self, gen):
        self.gen = gen
        self.actor = nn.Sequential(
            nn.Linear(OBS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, ACT), nn.Tanh()
        )
        self.first, self.second = Critic(), Critic()
        self.live = nn.ModuleList([self.actor, self.first, self.second])
        self.slow = copy.deepcopy(self.live)
        self.pairs = list(self.slow.parameters()), list(self.live.parameters())
        self.actor_params = list(self.actor.parameters())
        self.actor_opt = torch.optim.Adam(self.actor_params, lr=3e-4, fused=True)
        self.critic_opt = torch.optim.Adam([*self.first.parameters(), *self.second.parameters()], lr=1e-3, fused=True)

    @torch.no_grad()
    def act(self, state, noise=0.2):
        action = self.actor(state)
        return (action + noise * torch.randn(action.shape, generator=self.gen)).clamp(-1, 1)

    @torch.no_grad()
    def bellman(self, reward, following):
        actor, first, second = self.slow
        choice = actor(following)
        choice = (choice + (0.1 * torch.randn(choice.shape, generator=self.gen)).clamp(-0.3, 0.3)).clamp(-1, 1)
        return reward + GAMMA * torch.minimum(first(following, choice), second(following, choice))

    def learn(self, state, action, reward, following):
        goal = self.bellman(reward, following)
        error = F.mse_loss(self.first(state, action), goal) + F.mse_loss(self.second(state, action), goal)
        self.critic_opt.zero_grad()
        error.backward()
        self.critic_opt.step()

        gain = self.first(state, self.actor(state)).mean()
        self.actor_opt.zero_grad()
        gain.neg().backward(inputs=self.actor_params)
        self.actor_opt.step()
        self.follow()
        return error.detach()

    @torch.no_grad()
    def follow(self):
        torch._foreach_lerp_(*self.pairs, TAU)


def main(updates=1500):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    world, ring, agent = Thermals(gen), Ring(64 * 400, gen), Agent(gen)
    for _ in range(20):
        ring.push(*world.step(torch.rand(GLIDERS, ACT, generator=gen) * 2 - 1))
    earned = torch.zeros(())
    for update in range(1, updates + 1):
        moved = world.step(agent.act(world.state))
        ring.push(*moved)
        earned += moved[2].mean()
        error = agent.learn(*ring.sample(BATCH))
        if update % 300 == 0:
            print(f"{update:5d} reward {earned.item() / 300:+.4f} td {error.item():.5f}", flush=True)
            earned.zero_()


if __name__ == "__main__":
    main()
