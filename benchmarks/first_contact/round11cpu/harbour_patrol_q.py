"""Q-learning for a patrol boat among drifting buoys; many boats are simulated at once."""

import argparse
import copy

import torch
from torch import nn


class Harbour:
    """Boats on a torus; a boat is paid for closing in on its buoy."""

    MOVES = torch.tensor([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]])

    def __init__(self, boats: int, gen: torch.Generator):
        self.gen = gen
        self.boat = torch.rand(boats, 2, generator=gen)
        self.buoy = torch.rand(boats, 2, generator=gen)

    def observe(self) -> torch.Tensor:
        gap = (self.buoy - self.boat + 0.5) % 1.0 - 0.5
        return torch.cat([gap, gap.abs()], dim=1)

    def step(self, action: torch.Tensor) -> torch.Tensor:
        before = self.observe()[:, 2:].sum(1)
        self.boat = (self.boat + self.MOVES[action]) % 1.0
        self.buoy = (self.buoy + 0.01 * torch.randn(self.buoy.shape, generator=self.gen)) % 1.0
        return before - self.observe()[:, 2:].sum(1)


class Ring:
    """Preallocated replay memory."""

    def __init__(self, size: int, features: int):
        self.now = torch.zeros(size, features)
        self.then = torch.zeros(size, features)
        self.action = torch.zeros(size, dtype=torch.long)
        self.reward = torch.zeros(size)
        self.size, self.head, self.filled = size, 0, 0

    def put(self, now, action, reward, then) -> None:
        part = slice(self.head, self.head + len(action))
        self.now[part], self.action[part], self.reward[part], self.then[part] = now, action, reward, then
        self.head = (self.head + len(action)) % self.size
        self.filled = min(self.size, self.filled + len(action))

    def take(self, n: int, gen: torch.Generator):
        rows = torch.randint(self.filled, (n,), generator=gen)
        return self.now[rows], self.action[rows], self.reward[rows], self.then[rows]


def q_network(features: int, hidden: int, actions: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, actions)
    )


def learn(online, target, optimizer, batch, discount: float) -> float:
    now, action, reward, then = batch
    with torch.no_grad():
        goal = reward + discount * target(then).amax(1)
    value = online(now).gather(1, action[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--boats", type=int, default=256)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=320)
    parser.add_argument("--refresh", type=int, default=100)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(110)
    gen = torch.Generator().manual_seed(111)
    harbour, ring = Harbour(args.boats, gen), Ring(256 * 64, features=4)
    online = q_network(4, args.hidden, 4)
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3, fused=True)
    earned = 0.0
    for step in range(1, args.steps + 1):
        now = harbour.observe()
        with torch.no_grad():
            action = online(now).argmax(1)
        wander = torch.rand(args.boats, generator=gen) < 0.1
        action = torch.where(wander, torch.randint(4, action.shape, generator=gen), action)
        reward = harbour.step(action)
        ring.put(now, action, reward, harbour.observe())
        loss = learn(online, target, optimizer, ring.take(args.batch, gen), discount=0.9)
        earned += reward.mean().item()
        if step % args.refresh == 0:
            target.load_state_dict(online.state_dict())
        if step % (args.steps // 4) == 0:
            print(f"step {step}: td loss {loss:.5f}, earned {earned:.3f}")
            earned = 0.0


if __name__ == "__main__":
    main()
