"""Temporal differences for backgammon-like races: a wide value network after every handful of games."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)
dice = torch.Generator().manual_seed(31)

POINTS = 24
TABLES = 16
FEATURES = POINTS * 8 + 6


def fresh():
    board = torch.zeros(2, POINTS, dtype=torch.long)
    board[0, [0, 11, 16, 18]] = torch.tensor([2, 5, 3, 5])
    board[1, [0, 11, 16, 18]] = torch.tensor([2, 5, 3, 5])
    return board


OPENING = fresh()


class Tables:
    """Several games in parallel; both sides move at random, one of them with better luck."""

    def __init__(self, count):
        self.boards = OPENING.repeat(count, 1, 1)
        self.rows = torch.arange(count)
        self.turn = 0

    def roll(self):
        low, high = (1, 7) if self.turn else (2, 8)
        return torch.randint(low, high, (len(self.rows),), generator=dice)

    def play(self):
        side = self.boards[:, self.turn]
        source = torch.multinomial((side > 0).float(), 1, generator=dice)[:, 0]
        goal = source + self.roll()
        side[self.rows, source] -= 1
        inside = goal < POINTS
        side[self.rows[inside], goal[inside]] += 1
        over = side.sum(1) == 0
        won = torch.full((len(self.rows),), 1.0 - self.turn)
        self.boards[over] = OPENING
        self.turn = 1 - self.turn
        return over, won

    def features(self):
        steps = torch.arange(1, 5)[:, None, None, None]
        pile = (self.boards[None] >= steps).float().permute(1, 0, 2, 3).flatten(1)
        share = self.boards.sum(2).float() / 15
        mover = torch.full((len(share), 2), float(self.turn))
        return torch.cat([pile, share, 1 - share, mover], 1)


def value_network(width=896):
    return nn.Sequential(
        nn.Linear(FEATURES, width), nn.ReLU(inplace=True),
        nn.Linear(width, width), nn.ReLU(inplace=True),
        nn.Linear(width, width), nn.ReLU(inplace=True),
        nn.Linear(width, 1),
    )


def targets(network, tables, over, won):
    with torch.no_grad():
        later = network(tables.features())[:, 0].sigmoid()
    return torch.where(over, won, later)


network = value_network()
descent = torch.optim.AdamW(network.parameters(), lr=2e-4, weight_decay=1e-3, fused=True)
tables = Tables(TABLES)
surprise = 0.0
for step in range(1, 421):
    before = tables.features()
    goal = targets(network, tables, *tables.play())
    loss = F.binary_cross_entropy_with_logits(network(before)[:, 0], goal)
    descent.zero_grad()
    loss.backward()
    descent.step()
    surprise += loss.item()
    if step % 84 == 0:
        print(f"after {step} moves at {TABLES} tables: loss {surprise / 84:.4f}")
        surprise = 0.0
