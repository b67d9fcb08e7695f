"""Off-line double DQN for a home battery: charge, hold or sell, from a year of logged hours.

    python battery_offline_dqn.py --updates 2000
"""
from argparse import ArgumentParser
from collections import OrderedDict
from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F

STATE, CHOICES = 48, 9


class DuelingNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            OrderedDict(
                enter=nn.Linear(STATE, width),
                relu0=nn.ReLU(),
                middle=nn.Linear(width, width),
                relu1=nn.ReLU(),
                leave=nn.Linear(width, width),
                relu2=nn.ReLU(),
            )
        )
        self.worth = nn.Linear(width, 1)
        self.edge = nn.Linear(width, CHOICES)

    def forward(self, state):
        hidden = self.body(state)
        edge = self.edge(hidden)
        return self.worth(hidden) + edge - edge.mean(1, keepdim=True)


def logged_hours(count, generator):
    state = torch.randn(count + 1, STATE, generator=generator)
    state[1:] = 0.7 * state[:-1] + 0.7 * state[1:]
    choice = torch.randint(CHOICES, (count,), generator=generator)
    price = state[:-1] @ torch.randn(STATE, CHOICES, generator=generator) / STATE**0.5
    reward = price.gather(1, choice[:, None]).squeeze(1) + 0.1 * torch.randn(count, generator=generator)
    return state[:-1], choice, reward, state[1:]


def minibatches(columns, rows, generator):
    count = len(columns[0])
    while True:
        picked = torch.randint(count, (rows,), generator=generator)
        yield tuple(column[picked] for column in columns)


@torch.no_grad()
def double_target(online, frozen, reward, following, discount):
    best = online(following).argmax(1, keepdim=True)
    return reward + discount * frozen(following).gather(1, best).squeeze(1)


def run(options):
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed + 1)
    online = DuelingNet(options.width)
    frozen = deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=options.lr, betas=(0.9, 0.99), fused=True)
    batches = minibatches(logged_hours(8760, generator), options.rows, generator)
    error = torch.zeros(())
    for update, (state, choice, reward, following) in zip(range(1, options.updates + 1), batches):
        target = double_target(online, frozen, reward, following, options.discount)
        value = online(state).gather(1, choice[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        error += loss.detach()
        if update % options.sync == 0:
            frozen.load_state_dict(online.state_dict())
        if update % options.report == 0:
            print(f"{update:6d}  Bellman error {error.item() / options.report:.5f}", flush=True)
            error.zero_()


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--discount", type=float, default=0.9)
    parser.add_argument("--sync", type=int, default=50)
    parser.add_argument("--report", type=int, default=200)
    parser.add_argument("--seed", type=int, default=44)
    run(parser.parse_args())
