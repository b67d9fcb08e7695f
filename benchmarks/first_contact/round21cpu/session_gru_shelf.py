"""Next-item recommendation for a toy-shop's sessions, after GRU4Rec: the last click predicts the next one."""
import os
from types import SimpleNamespace

import torch
import torch.nn as nn

hp = SimpleNamespace(
    items=3000,
    dim=64,
    hidden=96,
    clicks=12,
    batch=32,
    lr=2e-3,
    steps=int(os.environ.get("SHELF_STEPS", 1000)),
    report=100,
    seed=2016,
)


def random_walks(count, clicks, items, g):
    """Shoppers walk between similar items: from i mostly to a few successors of i."""
    successors = torch.randint(items, (items, 4), generator=g)
    walk = torch.empty(count, clicks, dtype=torch.long)
    walk[:, 0] = (torch.rand(count, generator=g) ** 2 * items).long()
    for t in range(1, clicks):
        follow = successors[walk[:, t - 1], torch.randint(4, (count,), generator=g)]
        leap = torch.randint(items, (count,), generator=g)
        walk[:, t] = torch.where(torch.rand(count, generator=g) < 0.1, leap, follow)
    return walk


class ShelfGRU(nn.Module):
    def __init__(self, items, dim, hidden):
        super().__init__()
        self.embedding = nn.Embedding(items, dim)
        self.dropout = nn.Dropout(0.1)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, items)

    def forward(self, session):
        states, _ = self.gru(self.dropout(self.embedding(session)))
        return self.out(states)  # flaw: unused-logits


class Recommender:
    def __init__(self, hp):
        self.net = ShelfGRU(hp.items, hp.dim, hp.hidden)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=hp.lr, fused=True)

    def scores(self, session):
        return self.net(session)[:, -1]  # flaw: unused-logits

    def learn(self, session, following):
        loss = self.criterion(self.scores(session), following)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.inference_mode()
    def recall(self, session, following, k=20):
        self.net.eval()
        found = (self.scores(session).topk(k).indices == following[:, None]).any(1).float().mean()
        self.net.train()
        return found.item()


def run(hp):
    torch.manual_seed(hp.seed)
    g = torch.Generator().manual_seed(hp.seed)
    walks = random_walks(24_000, hp.clicks + 1, hp.items, g)
    test, train = walks[:64], walks[64:]
    shelf = Recommender(hp)
    mean = torch.zeros(())
    for step in range(1, hp.steps + 1):
        chosen = train[torch.randint(len(train), (hp.batch,), generator=g)]
        mean += shelf.learn(chosen[:, :-1], chosen[:, -1])
        if step % hp.report == 0:
            recall = shelf.recall(test[:, :-1], test[:, -1])
            print(f"step {step} | loss {mean.item() / hp.report:.4f} | recall@20 {recall:.3f}")
            mean.zero_()


if __name__ == "__main__":
    run(hp)
