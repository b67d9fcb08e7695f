"""Twin-critic deterministic control of a simulated arm (batched on the device), large networks."""
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
OBS, ACT = 64, 8
WIDTH = 32 if SMALL else 2048
BATCH = 16 if SMALL else 16384
MEMORY = 512 if SMALL else 400_000
STEPS = 30 if SMALL else 120
GAMMA, TAU, NOISE = 0.99, 0.005, 0.2


def mlp(inp, out):
    return nn.Sequential(nn.Linear(inp, WIDTH), nn.ReLU(inplace=True), nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True),
                         nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True), nn.Linear(WIDTH, out))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(OBS, ACT)

    def forward(self, obs):
        return torch.tanh(self.net(obs))


class TwinCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)

    def forward(self, obs, act):
        x = torch.cat([obs, act.to(obs.dtype)], dim=-1)
        return self.one(x).float().squeeze(-1), self.two(x).float().squeeze(-1)


class Follower:
    def __init__(self, source):
        self.net = copy.deepcopy(source).requires_grad_(False)
        self.mine, self.theirs = list(self.net.parameters()), list(source.parameters())

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.mine, self.theirs, TAU)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    actor, critic = Actor().to(device), TwinCritic().to(device)
    slow_actor, slow_critic = Follower(actor), Follower(critic)
    opt_a = torch.optim.Adam(actor.parameters(), lr=3e-4, fused=True)
    opt_c = torch.optim.Adam(critic.parameters(), lr=3e-4, fused=True)
    obs = torch.randn(MEMORY + 1, OBS, device=device)
    act = torch.rand(MEMORY, ACT, device=device) * 2 - 1
    rew = torch.randn(MEMORY, device=device)
    for step in range(STEPS):
        at = torch.randint(MEMORY, (BATCH,), device=device)
        o, a, r, o2 = obs[at], act[at], rew[at], obs[at + 1]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            with torch.no_grad():
                jitter = torch.randn_like(a).mul_(NOISE).clamp_(-0.5, 0.5)
                a2 = (slow_actor.net(o2) + jitter).clamp_(-1, 1)
                goal = r + GAMMA * torch.minimum(*slow_critic.net(o2, a2))
            q1, q2 = critic(o, a)
        critic_loss = F.mse_loss(q1, goal) + F.mse_loss(q2, goal)
        critic_loss.backward()
        opt_c.step()
        opt_c.zero_grad()
        if step % 2 == 0:
            critic.requires_grad_(False)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                actor_loss = -critic(o, actor(o))[0].mean()
            actor_loss.backward()
            critic.requires_grad_(True)
            opt_a.step()
            opt_a.zero_grad()
            slow_actor.update()
            slow_critic.update()
        if step % 40 == 0:
            print(f"{step:4d} critic {critic_loss.item():.3f} actor {actor_loss.item():.3f}")


if __name__ == "__main__":
    main()
