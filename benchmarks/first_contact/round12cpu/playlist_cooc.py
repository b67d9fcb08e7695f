"""Track embeddings from playlist co-occurrence, negative sampling, one table for all tracks."""
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F


@dataclass
class Settings:
    tracks: int = 120_000
    dim: int = 48
    pairs: int = 512
    negatives: int = 5
    rounds: int = 250
    lr: float = 30.0
    seed: int = 4


@dataclass
class Playlists:
    tracks: int
    gen: torch.Generator = field(repr=False)

    def sample(self, n):
        start = torch.randint(0, self.tracks - 50, (n,), generator=self.gen)
        return start, start + torch.randint(1, 50, (n,), generator=self.gen)


class Track2Vec(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.table = torch.nn.Embedding(s.tracks, s.dim)  # flaw: dense-embedding-gradient
        torch.nn.init.normal_(self.table.weight, std=0.05)

    def forward(self, a, b, neg):
        u, v, w = self.table(a), self.table(b), self.table(neg)
        good = F.logsigmoid((u * v).sum(-1))
        bad = F.logsigmoid(-torch.einsum("pd,pnd->pn", u, w)).sum(-1)
        return -(good + bad).mean()


def learn(s):
    torch.manual_seed(s.seed)
    gen = torch.Generator().manual_seed(s.seed)
    lists = Playlists(s.tracks, gen)
    model = Track2Vec(s)
    opt = torch.optim.SGD(model.parameters(), lr=s.lr)
    for r in range(s.rounds):
        a, b = lists.sample(s.pairs)
        neg = torch.randint(0, s.tracks, (s.pairs, s.negatives), generator=gen)
        opt.zero_grad()
        loss = model(a, b, neg)
        loss.backward()
        opt.step()
        if (r + 1) % 125 == 0:
            print(f"round {r + 1}: {loss.item():.5f}")


if __name__ == "__main__":
    learn(Settings())
