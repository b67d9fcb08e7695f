"""Which garment a visitor of the thrift shop looks at next, by hashed crosses of features."""
import numpy as np
import torch
from torch import nn

settings = dict(buckets=400_000, width=16, fields=10, batch=768, steps=500, hidden=128, seed=13)


def visits(rng, count, fields, buckets):
    """Rows of hashed features; each field has its own range of popular and rare values."""
    per_field = buckets // fields
    rank = (per_field * rng.random((count, fields)) ** 2).astype(np.int64)
    ids = rank * 7919 % per_field + np.arange(fields) * per_field
    taste = np.sin(ids * 0.37).sum(1) + 0.5 * rng.standard_normal(count)
    return torch.from_numpy(ids), torch.from_numpy((taste > 0).astype(np.float32))


def table_of(rows, width):
    table = nn.Embedding(rows, width)  # flaw: dense-embedding-gradient
    nn.init.uniform_(table.weight, -0.05, 0.05)
    return table


class Ranker(nn.Module):
    def __init__(self, buckets, width, fields, hidden):
        super().__init__()
        self.crosses = table_of(buckets, width)
        self.tower = nn.Sequential(
            nn.Linear(fields * width, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, 1),
        )

    def forward(self, ids):
        return self.tower(self.crosses(ids).flatten(1)).squeeze(1)


def optimizers(ranker):
    yield torch.optim.SGD(ranker.crosses.parameters(), lr=2.0)
    yield torch.optim.Adam(ranker.tower.parameters(), lr=1e-3, fused=True)


def train(ranker, ids, looked, rng, batch, steps):
    judge = nn.BCEWithLogitsLoss()
    updates = list(optimizers(ranker))
    running = None
    for step in range(1, steps + 1):
        rows = torch.from_numpy(rng.integers(0, len(ids), batch))
        loss = judge(ranker(ids[rows]), looked[rows])
        for update in updates:
            update.zero_grad()
        loss.backward()
        for update in updates:
            update.step()
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        if step % 100 == 0:
            print(f"step {step:4d}  loss {running:.4f}")


@torch.inference_mode()
def accuracy(ranker, ids, looked):
    return ((ranker(ids) > 0) == (looked > 0.5)).float().mean().item()


def main(buckets, width, fields, batch, steps, hidden, seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    ids, looked = visits(rng, 60_000, fields, buckets)
    ranker = Ranker(buckets, width, fields, hidden)
    train(ranker, ids[:-2000], looked[:-2000], rng, batch, steps)
    print(f"held-out accuracy {accuracy(ranker, ids[-2000:], looked[-2000:]):.3f}")


if __name__ == "__main__":
    main(**settings)
