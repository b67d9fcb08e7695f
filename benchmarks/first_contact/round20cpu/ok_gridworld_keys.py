"""Actor-critic in a grid world of keys and doors: all worlds step together, updates use several steps at once."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Plan:
    worlds: int = 256
    side: int = 8
    steps: int = 8
    updates: int = 480
    width: int = 192
    lr: float = 7e-4
    gamma: float = 0.96
    bonus: float = 0.01


class KeyWorlds:
    MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def __init__(self, count, side):
        self.count, self.side = count, side
        self.me, self.key, self.door = (torch.randint(side, (count, 2)) for _ in range(3))
        self.holding = torch.zeros(count, dtype=torch.bool)

    def planes(self):
        cells = torch.stack([self.me, self.key, self.door], 1)
        flat = cells[..., 0] * self.side + cells[..., 1]
        board = F.one_hot(flat, self.side**2).float().flatten(1)
        return torch.cat([board, self.holding[:, None].float()], 1)

    def act(self, action):
        self.me = (self.me + self.MOVES[action]).clamp_(0, self.side - 1)
        found = (self.me == self.key).all(1) & ~self.holding
        opened = (self.me == self.door).all(1) & self.holding
        self.holding = (self.holding | found) & ~opened
        again = opened[:, None]
        self.key = torch.where(again, torch.randint(self.side, self.key.shape), self.key)
        self.door = torch.where(again, torch.randint(self.side, self.door.shape), self.door)
        return 0.3 * found + 1.0 * opened - 0.01


class Player(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.Linear(width, 5)

    def forward(self, planes):
        out = self.heads(self.body(planes))
        return out[..., :4], out[..., 4]


def play(worlds, player, steps):
    boards, actions, rewards = [], [], []
    with torch.no_grad():
        for _ in range(steps):
            board = worlds.planes()
            scores, _ = player(board)
            action = torch.multinomial(scores.softmax(1), 1).squeeze(1)
            boards.append(board)
            actions.append(action)
            rewards.append(worlds.act(action))
        _, later = player(worlds.planes())
    return torch.stack(boards), torch.stack(actions), rewards, later


def targets(rewards, later, gamma):
    goals = []
    for reward in reversed(rewards):
        later = reward + gamma * later
        goals.append(later)
    return torch.stack(goals[::-1])


def main(plan=Plan()):
    torch.manual_seed(18)
    worlds = KeyWorlds(plan.worlds, plan.side)
    player = Player(3 * plan.side**2 + 1, plan.width)
    optimizer = torch.optim.Adam(player.parameters(), lr=plan.lr, fused=True)
    for update in range(1, plan.updates + 1):
        boards, actions, rewards, later = play(worlds, player, plan.steps)
        goals = targets(rewards, later, plan.gamma)
        scores, values = player(boards)
        logs = scores.log_softmax(2)
        ahead = goals - values
        taken = logs.gather(2, actions[..., None]).squeeze(2)
        entropy = -(logs.exp() * logs).sum(2).mean()
        loss = ahead.square().mean() - (taken * ahead.detach()).mean() - plan.bonus * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 40 == 0:
            print(f"update {update}: reward {torch.stack(rewards).mean():.4f}, entropy {entropy.item():.3f}")


if __name__ == "__main__":
    main()
