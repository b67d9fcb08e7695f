# Referee for a curling engine: judges a line of saved value networks by how well they predict the outcome of games.
import math

import torch
from torch import nn

SHOTS = 10 * 16
SENSED = 20  # weight, line, turn, sweeping, and where the stones lie


class ShotReader(nn.Module):
    """Chance that the team with the last stone wins, from all shots of the game."""

    def __init__(self, width=40):
        super().__init__()
        self.reader = nn.GRU(SENSED, width, batch_first=True)
        self.outcome = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, shots):
        _, last = self.reader(shots)
        return self.outcome(last[0]).squeeze(1)


class Referee:
    def __init__(self, games, results, portion):
        self.games = games
        self.results = results
        self.portion = portion

    def judge(self, net):  # flaw: grad-in-eval
        net.eval()
        surprise = torch.zeros(())
        right = torch.zeros((), dtype=torch.long)
        for game, won in zip(self.games.split(self.portion), self.results.split(self.portion)):
            score = net(game)
            surprise += nn.functional.binary_cross_entropy_with_logits(score, won, reduction="sum").detach()
            right += ((score > 0) == (won > 0.5)).sum()
        count = len(self.results)
        return {"bits": float(surprise) / count / math.log(2), "right": int(right) / count}


def make_games(count, generator):
    shots = torch.randn(count, SHOTS, SENSED, generator=generator)
    taste = torch.randn(SENSED, generator=generator)
    late = torch.linspace(0, 1, SHOTS)
    swing = (shots @ taste * late).sum(1)
    won = (swing + 4 * torch.randn(count, generator=generator) > 0).float()
    return shots, won


def checkpoints(count):
    """Networks as the engine saved them, one after the other."""
    for number in range(count):
        torch.manual_seed(number)
        yield f"net-{number:02}", ShotReader()


generator = torch.Generator().manual_seed(2)
referee = Referee(*make_games(1920, generator), portion=96)
table = []
for name, net in checkpoints(24):
    verdict = referee.judge(net)
    table.append((verdict["bits"], name))
    if name.endswith(("0", "5")):
        print(f"{name}: {verdict['bits']:.4f} bits, {verdict['right']:.2%} right")
print("best:", ", ".join(name for _, name in sorted(table)[:3]))
