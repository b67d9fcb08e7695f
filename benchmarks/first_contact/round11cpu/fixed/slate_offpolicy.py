"""Doubly robust off-policy evaluation of a ranking policy from a small bandit log.

The log is cut into many small nightly shards; one shard is one short epoch of the reward model.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Logged(NamedTuple):
    context: torch.Tensor
    arm: torch.Tensor
    propensity: torch.Tensor
    reward: torch.Tensor


SETTINGS = {
    "contexts": 24,
    "arms": 12,
    "shard": 1536,
    "batch": 128,
    "nights": 66,
    "hidden": 448,
    "lr": 3e-4,
}


def simulate_log(rows: int, contexts: int, arms: int, seed: int) -> list[bytes]:
    """Returns packed float32 records (context, arm, propensity, reward), as the serving system writes them."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(contexts, arms))
    x = rng.normal(size=(rows, contexts))
    scores = x @ taste * 0.3
    probs = np.exp(scores - scores.max(1, keepdims=True))
    probs /= probs.sum(1, keepdims=True)
    records = []
    for row, p in zip(x, probs):
        arm = int(rng.choice(arms, p=p))
        click = rng.random() < 1 / (1 + np.exp(-(row @ taste[:, arm])))
        records.append(np.array([*row, arm, p[arm], click], dtype=np.float32).tobytes())
    return records


class BanditShard(Dataset):
    def __init__(self, records: list[bytes]):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, i):
        return np.frombuffer(self.records[i], dtype=np.float32)


def unpack(rows: list[np.ndarray]) -> Logged:
    table = torch.from_numpy(np.stack(rows))
    return Logged(table[:, :-3], table[:, -3].long(), table[:, -2], table[:, -1])


class RewardNet(nn.Module):
    def __init__(self, contexts: int, arms: int, hidden: int):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(contexts, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden)
        )
        self.per_arm = nn.Linear(hidden, arms)

    def forward(self, context):
        return self.per_arm(nn.functional.silu(self.trunk(context)))


def nightly_pass(net, loader, optimizer):
    total, weighted = 0.0, 0.0
    for batch in loader:
        logits = net(batch.context)
        chosen = logits.gather(1, batch.arm[:, None]).squeeze(1)
        weights = (0.1 / batch.propensity).clamp(max=5.0)
        loss = nn.functional.binary_cross_entropy_with_logits(chosen, batch.reward, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        with torch.no_grad():
            direct = torch.sigmoid(logits.detach()).amax(1).mean()
        weighted += direct.item()
    return total / len(loader), weighted / len(loader)


def main(cfg=SETTINGS):
    torch.manual_seed(11)
    shard = BanditShard(simulate_log(cfg["shard"], cfg["contexts"], cfg["arms"], seed=3))
    loader = DataLoader(
        shard,
        batch_size=cfg["batch"],
        shuffle=True,
        collate_fn=unpack,
        num_workers=2,
        persistent_workers=True,
    )
    net = RewardNet(cfg["contexts"], cfg["arms"], cfg["hidden"])
    optimizer = torch.optim.Adam(net.parameters(), lr=cfg["lr"], fused=True)
    for night in range(cfg["nights"]):
        loss, value = nightly_pass(net, loader, optimizer)
        if night % 22 == 21:
            print(f"night {night + 1:3d}: weighted nll {loss:.4f}, greedy value {value:.4f}")


if __name__ == "__main__":
    main()
