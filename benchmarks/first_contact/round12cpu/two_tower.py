"""Two-tower recommender trained with in-batch negatives; sparse tables, dense towers."""
import torch
from torch import nn

torch.sparse.check_sparse_tensor_invariants.disable()


class Tower(nn.Module):
    def __init__(self, ids, dim=32):
        super().__init__()
        self.table = nn.EmbeddingBag(ids, dim, mode="mean", sparse=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, dim))

    def forward(self, ids):
        return nn.functional.normalize(self.mlp(self.table(ids)), dim=-1)


class Interactions:
    """Users like items of their own region of the catalogue."""

    def __init__(self, users, items, gen):
        self.users, self.items, self.gen = users, items, gen

    def batch(self, n):
        user = torch.randint(0, self.users - 8, (n, 1), generator=self.gen)
        item = (user * self.items) // self.users + torch.randint(0, 40, (n, 1), generator=self.gen)
        return user + torch.arange(4), (item + torch.arange(6)).clamp(max=self.items - 1)


def fit(rounds):
    torch.manual_seed(11)
    feed = Interactions(60_000, 90_000, torch.Generator().manual_seed(11))
    user_tower, item_tower = Tower(feed.users), Tower(feed.items)
    towers = nn.ModuleList([user_tower, item_tower])
    tables = [p for n, p in towers.named_parameters() if "table" in n]
    dense = [p for n, p in towers.named_parameters() if "table" not in n]
    optimizers = [torch.optim.SGD(tables, lr=2.0), torch.optim.Adam(dense, lr=1e-3, fused=True)]
    same = torch.arange(384)
    window = []
    for r in range(1, rounds + 1):
        users, items = feed.batch(384)
        logits = user_tower(users) @ item_tower(items).T / 0.1
        loss = nn.functional.cross_entropy(logits, same)
        for o in optimizers:
            o.zero_grad()
        loss.backward()
        for o in optimizers:
            o.step()
        window.append(loss.detach())
        if r % 350 == 0:
            print(f"round {r}: {torch.stack(window).mean().item():.4f}")
            window.clear()


fit(rounds=700)
