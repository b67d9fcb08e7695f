"""Offline evaluation of greenhouse control (heat, vents, lamps, irrigation) from logged seasons.

Two critics are fitted to the returns of the logged policy (clipped double Q, SARSA form); the smaller of their
targets is bootstrapped from.
"""
import copy
import os

import torch
from torch import nn
from torch.nn import functional as F

TINY = os.environ.get("TINY") == "1"


class Log:
    """Transitions in device memory."""

    keys = ("state", "action", "reward", "next_state", "next_action")

    def __init__(self, size, states, actions, device, seed):
        self.rng = torch.Generator(device).manual_seed(seed)
        self.size = size
        normal = dict(device=device, generator=self.rng)
        self.state = torch.randn(size, states, **normal)
        self.action = torch.tanh(torch.randn(size, actions, **normal))
        drift = torch.randn(states + actions, states, **normal) / (states + actions) ** 0.5
        both = torch.cat((self.state, self.action), 1)
        self.next_state = 0.9 * self.state + 0.1 * both @ drift
        self.next_action = torch.tanh(torch.randn(size, actions, **normal))
        self.reward = -self.next_state[:, :4].abs().mean(1) - 0.1 * self.action.square().mean(1)

    def draw(self, amount):
        at = torch.randint(self.size, (amount,), device=self.state.device, generator=self.rng)
        return at

    def rows(self, at):
        return {key: getattr(self, key)[at] for key in self.keys}


class DoubleCritic(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.first = self.tower(inputs, width)
        self.second = self.tower(inputs, width)

    @staticmethod
    def tower(inputs, width):
        return nn.Sequential(
            nn.Linear(inputs, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 8),
        )

    def forward(self, state, action):
        x = torch.cat((state, action), 1)
        # eight quantities are valued at once: yield, energy, water, ...
        return self.first(x), self.second(x)


class Evaluator:
    batch = 64 if TINY else 16384
    micro = 64 if TINY else 16384

    def __init__(self, log, states, actions, width, device, discount=0.98, polyak=0.005):
        self.log, self.device = log, device
        self.discount, self.polyak = discount, polyak
        self.critic = DoubleCritic(states + actions, width).to(device)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-4, fused=True)
        self.online = list(self.critic.parameters())
        self.frozen = list(self.target.parameters())

    def goal(self, rows):
        with torch.no_grad():
            one, two = self.target(rows["next_state"], rows["next_action"])
            return rows["reward"].unsqueeze(1) + self.discount * torch.minimum(one, two).float()

    def loss(self, rows):
        with torch.autocast(self.device, dtype=torch.bfloat16):
            goal = self.goal(rows)
            one, two = self.critic(rows["state"], rows["action"])
        return F.mse_loss(one.float(), goal) + F.mse_loss(two.float(), goal)

    def improve(self):
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.log.draw(self.batch).split(self.micro)
        total = 0.0
        for part in parts:
            loss = self.loss(self.log.rows(part)) / len(parts)
            loss.backward()
            total = total + loss.detach()
        self.optimizer.step()
        torch._foreach_lerp_(self.frozen, self.online, self.polyak)
        return total


def main():
    torch.manual_seed(15)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    states, actions = 48, 16
    log = Log(2000 if TINY else 1_000_000, states, actions, device, seed=16)
    evaluator = Evaluator(log, states, actions, 64 if TINY else 2048, device)
    window = 10 if TINY else 100
    history = torch.zeros(window, device=device)
    for update in range(40 if TINY else 2000):
        history[update % window] = evaluator.improve()
        if (update + 1) % window == 0:
            print(f"update {update + 1}: TD error {history.mean().item():.5f}", flush=True)


if __name__ == "__main__":
    main()
