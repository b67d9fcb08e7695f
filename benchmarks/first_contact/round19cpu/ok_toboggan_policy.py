"""Steering toboggans down a bent run with an actor-critic; all sleds go down side by side."""
from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn
from torch.distributions import Categorical


@dataclasses.dataclass(frozen=True)
class Options:
    sleds: int = 64
    horizon: int = 16
    rounds: int = 120
    passes: int = 5
    hidden: int = 256
    sight: int = 32
    discount: float = 0.97
    seed: int = 22


class Run:
    """A track: the sled sees the bends ahead and its own place, and steers left, straight or right."""

    def __init__(self, opt: Options) -> None:
        self.gen = torch.Generator().manual_seed(opt.seed)
        self.bends = torch.randn(4096, generator=self.gen)
        self.windows = self.bends.unfold(0, opt.sight, 1)
        self.place = torch.zeros(opt.sleds)
        self.at = torch.randint(0, 2000, (opt.sleds,), generator=self.gen)

    def view(self) -> Tensor:
        return torch.cat([self.windows[self.at], self.place[:, None]], 1)

    def steer(self, choice: Tensor) -> Tensor:
        self.place = (self.place + 0.5 * (choice - 1) - 0.4 * self.bends[self.at]).clamp_(-3, 3)
        self.at = (self.at + 1) % len(self.windows)
        return 1 - self.place.abs()


class Pilot(nn.Module):
    def __init__(self, opt: Options) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(opt.sight + 1, opt.hidden), nn.ReLU(inplace=True),
            nn.Linear(opt.hidden, opt.hidden), nn.ReLU(inplace=True),
        )
        self.both = nn.Linear(opt.hidden, 4)

    def forward(self, view: Tensor) -> tuple[Tensor, Tensor]:
        return self.both(self.trunk(view)).split([3, 1], -1)


@torch.no_grad()
def descend(run: Run, pilot: Pilot, opt: Options) -> tuple[Tensor, Tensor, Tensor, float]:
    views, choices, rewards = [], [], []
    for _ in range(opt.horizon):
        view = run.view()
        choice = torch.multinomial(pilot(view)[0].softmax(-1), 1, generator=run.gen)[:, 0]
        views.append(view)
        choices.append(choice)
        rewards.append(run.steer(choice))
    value = pilot(run.view())[1][:, 0]
    returns = []
    for reward in reversed(rewards):
        value = reward + opt.discount * value
        returns.append(value)
    mean = torch.stack(rewards).mean().item()
    return torch.cat(views), torch.cat(choices), torch.cat(returns[::-1]), mean


def improve(pilot: Pilot, optimizer, views: Tensor, choices: Tensor, returns: Tensor) -> None:
    logits, values = pilot(views)
    policy = Categorical(logits=logits, validate_args=False)
    gain = returns - values[:, 0].detach()
    objective = (policy.log_prob(choices) * gain).mean() + 0.01 * policy.entropy().mean()
    loss = nn.functional.smooth_l1_loss(values[:, 0], returns) - objective
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main(opt: Options = Options()) -> None:
    torch.manual_seed(opt.seed)
    run, pilot = Run(opt), Pilot(opt)
    optimizer = torch.optim.Adam(pilot.parameters(), lr=5e-4, fused=True)
    for number in range(1, opt.rounds + 1):
        *memory, mean = descend(run, pilot, opt)
        for _ in range(opt.passes):
            improve(pilot, optimizer, *memory)
        if number % 15 == 0:
            print(f"round {number}: mean reward {mean:.3f}")


if __name__ == "__main__":
    main()
