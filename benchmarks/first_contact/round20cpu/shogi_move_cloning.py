"""Behaviour cloning of shogi moves: a policy over 81 squares x 27 kinds of moves imitates recorded games."""
import time

import torch
from torch import nn

SQUARES, KINDS = 81, 27
MOVES = SQUARES * KINDS
PLANES = 14


class Imitation(nn.Module):
    """Surprise at the recorded move."""

    def forward(self, scores, moves):
        opinion = scores.softmax(1)  # flaw: hand-written-loss
        surprise = -torch.log(opinion + 1e-9)  # flaw: hand-written-loss
        return surprise.gather(1, moves[:, None]).mean()  # flaw: hand-written-loss


class Policy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.board = nn.Linear(PLANES * SQUARES, width)
        self.think = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.choose = nn.Linear(width, MOVES)

    def forward(self, boards):
        return self.choose(self.think(self.board(boards)))


class Games:
    """Recorded positions, drawn in random order without end."""

    def __init__(self, count, rows):
        generator = torch.Generator().manual_seed(8)
        self.boards = (torch.rand(count, PLANES * SQUARES, generator=generator) < 0.08).float()
        opinion = torch.randn(PLANES * SQUARES, 40, generator=generator)
        style = torch.randint(MOVES, (40,), generator=generator)
        self.moves = style[(self.boards @ opinion).argmax(1)]
        self.rows = rows
        self.generator = generator

    def __iter__(self):
        while True:
            order = torch.randperm(len(self.moves), generator=self.generator)
            for pick in order.split(self.rows):
                yield self.boards[pick], self.moves[pick]


class Learner:
    def __init__(self, policy, objective, lr):
        self.policy = policy
        self.objective = objective
        self.optimizer = torch.optim.AdamW(policy.parameters(), lr=lr, fused=True)

    def update(self, boards, moves):
        scores = self.policy(boards)
        loss = self.objective(scores, moves)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main(updates=320):
    torch.manual_seed(1)
    games = iter(Games(16384, 1280))
    learner = Learner(Policy(), Imitation(), 2e-3)
    began = time.perf_counter()
    for update in range(1, updates + 1):
        loss = learner.update(*next(games))
        if update % 40 == 0:
            print(f"update {update}: surprise {loss:.4f}, {time.perf_counter() - began:.1f} s")
    boards, moves = next(games)
    with torch.inference_mode():
        hits = (learner.policy(boards).argmax(1) == moves).float().mean()
    print(f"move agreement {hits:.3f}")


if __name__ == "__main__":
    main()
