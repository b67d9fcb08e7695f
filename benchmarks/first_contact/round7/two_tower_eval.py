"""Recall of a two-tower recommender on held-out users."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class EvalConfig:
    n_items: int
    n_users: int
    batch: int
    features: int
    hidden: int
    out: int
    k: int = 20


class Tower(nn.Module):
    def __init__(self, features, hidden, out):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, out),
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.user = Tower(cfg.features, cfg.hidden, cfg.out)
        self.item = Tower(cfg.features, cfg.hidden, cfg.out)


class Evaluator:
    def __init__(self, model, items, cfg):
        self.model = model.eval()
        self.items = items
        self.cfg = cfg

    def recommend(self, users):
        item_vectors = self.model.item(self.items)  # flaw: constant-rebuilt
        user_vectors = self.model.user(users)
        scores = user_vectors @ item_vectors.T
        return scores.topk(self.cfg.k, dim=-1).indices

    @torch.inference_mode()
    def recall(self, users, positives):
        hits = torch.zeros((), device=users.device)
        for lo in range(0, len(users), self.cfg.batch):
            top = self.recommend(users[lo : lo + self.cfg.batch])
            hits += (top == positives[lo : lo + self.cfg.batch, None]).any(-1).sum()
        return hits.item() / len(users)


def main():
    torch.manual_seed(0)
    if torch.cuda.is_available():
        cfg = EvalConfig(200_000, 512 * 400, 512, 256, 1024, 128)
        device, dtype = "cuda", torch.bfloat16
    else:
        cfg = EvalConfig(500, 64, 16, 8, 16, 8)
        device, dtype = "cpu", torch.float32
    model = TwoTower(cfg).to(device, dtype)
    items = torch.randn(cfg.n_items, cfg.features, device=device, dtype=dtype)
    positives = torch.randint(cfg.n_items, (cfg.n_users,), device=device)
    users = items[positives] + 0.1 * torch.randn(
        cfg.n_users, cfg.features, device=device, dtype=dtype
    )
    evaluator = Evaluator(model, items, cfg)
    print(f"recall@{cfg.k}: {evaluator.recall(users, positives):.5f}")


if __name__ == "__main__":
    main()
