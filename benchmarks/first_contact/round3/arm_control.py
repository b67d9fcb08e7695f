"""Twin-critic control from a replay buffer on the device (update phase only)."""
import copy
import os
import torch
import torch.nn.functional as F
from torch import nn

SMALL = os.environ.get("SMALL") == "1"
OBS, ACT, WIDTH, BATCH, REPLAY, STEPS = (12, 4, 32, 8, 128, 30) if SMALL else (128, 16, 2048, 8192, 131072, 100)
GAMMA, TAU = 0.99, 0.005


def mlp(inp, out):
    return nn.Sequential(
        nn.Linear(inp, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, out)
    )


class Agent:
    def __init__(self, device):
        self.device = device
        self.actor = mlp(OBS, ACT).to(device)
        self.critics = nn.ModuleList(mlp(OBS + ACT, 1) for _ in range(2)).to(device)
        self.slow = copy.deepcopy(self.critics).requires_grad_(False)
        self.pairs = list(self.slow.parameters()), [p.detach() for p in self.critics.parameters()]
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-4, fused=True)
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=3e-4, fused=True)

    def amp(self):
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def update(self, s, a, r, s2):
        with torch.no_grad(), self.amp():
            x2 = torch.cat([s2, self.actor(s2).tanh()], 1)
            goal = r + GAMMA * torch.minimum(self.slow[0](x2), self.slow[1](x2)).float().squeeze(1)
        with self.amp():
            x = torch.cat([s, a], 1)
            guesses = [c(x).float().squeeze(1) for c in self.critics]
        critic_loss = F.mse_loss(guesses[0], goal) + F.mse_loss(guesses[1], goal)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        self.critics.requires_grad_(False)
        with self.amp():
            actor_loss = -self.critics[0](torch.cat([s, self.actor(s).tanh()], 1)).float().mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        self.critics.requires_grad_(True)
        torch._foreach_lerp_(*self.pairs, TAU)
        return critic_loss.detach()


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(3)
    agent = Agent(device)
    states, actions = torch.randn(REPLAY, OBS, device=device), torch.rand(REPLAY, ACT, device=device) * 2 - 1
    rewards, after = torch.randn(REPLAY, device=device), torch.randn(REPLAY, OBS, device=device)
    total = torch.zeros((), device=device)
    for _ in range(STEPS):
        i = torch.randint(REPLAY, (BATCH,), device=device)
        total += agent.update(states[i], actions[i], rewards[i], after[i])
    print("critic loss", total.item() / STEPS)
