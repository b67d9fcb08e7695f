"""Two-tower retrieval model for recommendations, trained with in-batch negatives."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"

CONFIG = {
    "users": 6_000_000 if ON_GPU else 2000,
    "items": 1_000_000 if ON_GPU else 500,
    "embedding": 64 if ON_GPU else 16,
    "tower": [1024, 1024, 128] if ON_GPU else [32, 16],
    "batch": 12288 if ON_GPU else 64,
    "steps": 400 if ON_GPU else 10,
    "temperature": 0.07,
}


def mlp(sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Tower(nn.Module):
    def __init__(self, rows, cfg):
        super().__init__()
        self.table = nn.Embedding(rows, cfg["embedding"])  # flaw: dense-embedding-gradient
        self.net = mlp([cfg["embedding"], *cfg["tower"]])

    def forward(self, ids):
        return F.normalize(self.net(self.table(ids)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.user = Tower(cfg["users"], cfg)
        self.item = Tower(cfg["items"], cfg)
        self.temperature = cfg["temperature"]

    def forward(self, users, items):
        logits = self.user(users) @ self.item(items).T / self.temperature
        target = torch.arange(len(users), device=users.device)
        return F.cross_entropy(logits, target)

    def tables(self):
        return [self.user.table.weight, self.item.table.weight]

    def dense(self):
        return [*self.user.net.parameters(), *self.item.net.parameters()]


def interactions(cfg, count):
    """Popular items get most of the clicks."""
    users = torch.randint(cfg["users"], (count,), device=DEVICE)
    items = (torch.rand(count, device=DEVICE) ** 3 * cfg["items"]).long()
    return users, items


def train(cfg):
    with torch.device(DEVICE):
        model = TwoTower(cfg)
    optimizers = [
        torch.optim.Adagrad(model.tables(), lr=0.05),
        torch.optim.AdamW(model.dense(), lr=1e-3, fused=True),
    ]
    users, items = interactions(cfg, cfg["batch"] * 100)
    running = torch.zeros((), device=DEVICE)
    for step in range(cfg["steps"]):
        low = step % 100 * cfg["batch"]
        chosen = slice(low, low + cfg["batch"])
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(users[chosen], items[chosen])
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        running += loss.detach()
        if (step + 1) % 100 == 0 or step + 1 == cfg["steps"]:
            print(f"{step + 1:5d}  loss {running.item() / (step + 1):.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    train(CONFIG)
