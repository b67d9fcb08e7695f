"""REINFORCE with a value baseline on a vectorised drone swarm that must gather at a beacon."""

import argparse
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributions import Categorical

HEADINGS = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]])


@dataclass
class Episode:
    views: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor


class SwarmField:
    """Every drone sees a noisy radar sweep of the beacon and its own drift."""

    def __init__(self, drones: int, beams: int, gen: torch.Generator):
        self.drones, self.beams, self.gen = drones, beams, gen
        angles = torch.arange(beams) * (2 * torch.pi / beams)
        self.dirs = torch.stack([angles.cos(), angles.sin()])

    def reset(self):
        self.at = torch.randn(self.drones, 2, generator=self.gen) * 3
        return self.view()

    def view(self):
        return (self.at @ self.dirs).neg()

    def step(self, action):
        before = self.at.norm(dim=1)
        self.at = self.at + 0.2 * HEADINGS[action]
        return self.view(), before - self.at.norm(dim=1)


class Pilot(nn.Module):
    def __init__(self, beams: int, hidden: int):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(beams, hidden), nn.Tanh(), nn.Linear(hidden, len(HEADINGS)))
        self.value = nn.Sequential(nn.Linear(beams, hidden), nn.Tanh(), nn.Linear(hidden, 1))


@torch.no_grad()
def fly(field: SwarmField, pilot: Pilot, horizon: int) -> Episode:
    view = field.reset()
    views = torch.empty(0, *view.shape)  # flaw: cat-in-loop
    actions, rewards = [], []
    for _ in range(horizon):
        noise = torch.rand(field.drones, len(HEADINGS), generator=field.gen).clamp_(min=1e-9)
        action = (pilot.policy(view) - noise.log().neg_().log_()).argmax(1)
        views = torch.cat([views, view.unsqueeze(0)])  # flaw: cat-in-loop
        view, reward = field.step(action)
        actions.append(action)
        rewards.append(reward)
    return Episode(views, torch.stack(actions), torch.stack(rewards))  # flaw: cat-in-loop


def returns_to_go(rewards: torch.Tensor) -> torch.Tensor:
    return rewards.flip(0).cumsum(0).flip(0)


def improve(pilot: Pilot, optimizer, episode: Episode, entropy_weight: float, stride: int):
    gains = returns_to_go(episode.rewards)[::stride]
    views = episode.views[::stride]
    dist = Categorical(logits=pilot.policy(views))
    values = pilot.value(views).squeeze(-1)
    advantage = gains - values.detach()
    policy_loss = -(dist.log_prob(episode.actions[::stride]) * advantage).mean()
    loss = policy_loss + 0.5 * nn.functional.mse_loss(values, gains) - entropy_weight * dist.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return gains[0].mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--drones", type=int, default=128)
    parser.add_argument("--beams", type=int, default=64)
    parser.add_argument("--horizon", type=int, default=80)
    parser.add_argument("--stride", type=int, default=8)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(2)
    field = SwarmField(args.drones, args.beams, torch.Generator().manual_seed(2))
    pilot = Pilot(args.beams, hidden=48)
    optimizer = torch.optim.Adam(pilot.parameters(), lr=3e-3, fused=True)
    for update in range(1, args.updates + 1):
        gain = improve(pilot, optimizer, fly(field, pilot, args.horizon), 0.01, args.stride)
        if update % 100 == 0:
            print(f"update {update:4d}  mean distance gained {gain:.3f}")


if __name__ == "__main__":
    main()
