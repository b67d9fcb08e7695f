"""A policy trained in an environment written in Python."""

import random

import torch
from torch import nn

SIZE = 12


class Maze:
    def __init__(self, seed):
        noise = random.Random(seed)
        self.walls = {(noise.randrange(SIZE), noise.randrange(SIZE)) for _ in range(30)}
        self.at = (0, 0)

    def move(self, action):
        dx, dy = ((0, 1), (1, 0), (0, -1), (-1, 0))[action]
        x, y = self.at[0] + dx, self.at[1] + dy
        if 0 <= x < SIZE and 0 <= y < SIZE and (x, y) not in self.walls:
            self.at = (x, y)
        return -abs(SIZE - 1 - self.at[0]) - abs(SIZE - 1 - self.at[1])

    def distances(self):
        seen, edge, far = {self.at: 0}, [self.at], 0
        while edge:
            x, y = edge.pop(0)
            for step in ((x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)):
                if step in seen or step in self.walls or not (0 <= step[0] < SIZE and 0 <= step[1] < SIZE):
                    continue
                seen[step] = seen[x, y] + 1
                far = max(far, seen[step])
                edge.append(step)
        return far


policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for episode in range(10**6):
    maze = Maze(episode % 7)
    logs, rewards = [], []
    for _ in range(40):
        state = torch.tensor(maze.at, dtype=torch.float32)
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        logs.append(choice.log_prob(action))
        rewards.append(maze.move(action.item()))
        far = maze.distances()
    returns = torch.tensor(rewards, dtype=torch.float32).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(logs) * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
