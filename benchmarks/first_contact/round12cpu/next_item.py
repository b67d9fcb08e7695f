"""Session-based recommendation: predict the item after the session (GRU4Rec style)."""
import json

import torch
from torch import nn

SPEC = json.loads("""
{"items": 6000, "dim": 64, "session": 12, "batch": 24, "lr": 0.05, "max_updates": 320}
""")


class SessionModel(nn.Module):
    def __init__(self, items, dim):
        super().__init__()
        self.items = nn.Embedding(items, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.score = nn.Linear(dim, items)

    def forward(self, session):
        hidden, _ = self.gru(self.items(session))
        return self.score(hidden)  # flaw: unused-logits


class SessionSource:
    """Walks along a fixed random graph of items."""

    def __init__(self, spec):
        self.gen = torch.Generator().manual_seed(77)
        self.spec = spec
        self.link = torch.randint(0, spec["items"], (spec["items"], 4), generator=self.gen)

    def __iter__(self):
        return self

    def __next__(self):
        b, n = self.spec["batch"], self.spec["session"]
        walk = [torch.randint(0, 300, (b,), generator=self.gen)]
        hops = torch.randint(0, 4, (n, b), generator=self.gen)
        for hop in hops:
            walk.append(self.link[walk[-1], hop])
        walk = torch.stack(walk, 1)
        return walk[:, :-1], walk[:, -1]


def run(spec):
    torch.manual_seed(77)
    model = SessionModel(spec["items"], spec["dim"])
    opt = torch.optim.SGD(model.parameters(), lr=spec["lr"])
    loss_fn = nn.CrossEntropyLoss()
    for update, (session, following) in enumerate(SessionSource(spec), 1):
        opt.zero_grad()
        scores = model(session)
        loss = loss_fn(scores[:, -1], following)  # flaw: unused-logits
        loss.backward()
        opt.step()
        if update % 160 == 0:
            print(f"update {update}: loss {loss.item():.5f}")
        if update == spec["max_updates"]:
            break


if __name__ == "__main__":
    run(SPEC)
