"""Translational embeddings of a genealogy graph: (person, relation, person) with shared negatives."""
import os

import torch
import torch.nn.functional as F
from torch import nn

tiny = os.environ.get("TINY") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"
PERSONS = 5_000 if tiny else 4_000_000
RELATIONS = 40
WIDTH = 16 if tiny else 128
EDGES = 2_000 if tiny else 3_000_000
LOT = 64 if tiny else 8192
NEGATIVES = 32 if tiny else 1024
ROUNDS = 5 if tiny else 400


class Embedder(nn.Module):
    """Rows with a small uniform start, so that distances begin near one."""

    options = {}

    def __init__(self, rows):
        super().__init__()
        self.rows = nn.Embedding(rows, WIDTH, **self.options)
        nn.init.uniform_(self.rows.weight, -0.1, 0.1)

    def forward(self, index):
        return self.rows(index)


class Person(Embedder):
    options = dict(padding_idx=0, sparse=True)


class Relation(Embedder):
    options = {}


class Kinship(nn.Module):
    def __init__(self):
        super().__init__()
        self.person = Person(PERSONS)
        self.relation = Relation(RELATIONS)

    def forward(self, head, kind, tail, other):
        where = self.person(head) + self.relation(kind)
        near = (where * self.person(tail)).sum(-1, keepdim=True)
        far = where @ self.person(other).T
        return torch.cat([near, far], 1)


def edges():
    g = torch.Generator(device=dev).manual_seed(2)
    draw = lambda most: torch.randint(1, most, (EDGES,), generator=g, device=dev)
    return draw(PERSONS), draw(RELATIONS), draw(PERSONS)


def fit():
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    heads, kinds, tails = edges()
    with torch.device(dev):
        model = Kinship()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    g = torch.Generator(device=dev).manual_seed(3)
    truth = torch.zeros(LOT, dtype=torch.long, device=dev)
    curve = torch.zeros(ROUNDS, device=dev)
    for r in range(ROUNDS):
        pick = torch.randint(0, EDGES, (LOT,), generator=g, device=dev)
        other = torch.randint(1, PERSONS, (NEGATIVES,), generator=g, device=dev)
        loss = F.cross_entropy(model(heads[pick], kinds[pick], tails[pick], other), truth)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        curve[r] = loss.detach()
    print("loss %.5f -> %.5f" % (curve[0].item(), curve[-1].item()))


if __name__ == "__main__":
    fit()
