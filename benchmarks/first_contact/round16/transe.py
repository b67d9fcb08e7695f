"""TransE on a synthetic knowledge graph."""
import os

import torch
import torch.nn.functional as F
from torch import nn, optim

TINY = os.environ.get("TINY") == "1"
ENTITIES = 2000 if TINY else 4_000_000
RELATIONS = 64
DIM = 16 if TINY else 128
TRIPLES = 32 if TINY else 4096
WRONG = 4 if TINY else 32
ROUNDS = 6 if TINY else 700
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Facts:
    """Samples true triples and wrong tails."""

    def __init__(self, seed):
        self.gen = torch.Generator(device=DEVICE).manual_seed(seed)

    def draw(self, high, *size):
        return torch.randint(high, size, generator=self.gen, device=DEVICE)

    def __iter__(self):
        for _ in range(ROUNDS):
            head = self.draw(ENTITIES, TRIPLES)
            relation = self.draw(RELATIONS, TRIPLES)
            tail = (head * 31 + relation * 7) % ENTITIES
            yield head, relation, tail, self.draw(ENTITIES, TRIPLES, WRONG)


class TransE(nn.Module):
    def __init__(self):
        super().__init__()
        bound = 6 / DIM ** 0.5
        self.entity = nn.Parameter(torch.empty(ENTITIES, DIM).uniform_(-bound, bound))
        self.relation = nn.Parameter(torch.empty(RELATIONS, DIM).uniform_(-bound, bound))

    def lookup(self, ids):
        return F.embedding(ids, self.entity)  # flaw: dense-embedding-gradient

    def forward(self, head, relation, tail, wrong):
        ids = torch.cat([head[:, None], tail[:, None], wrong], 1)
        rows = self.lookup(ids)
        start, ends = rows[:, :1], rows[:, 1:]
        goal = start + F.embedding(relation, self.relation)[:, None]
        distance = torch.linalg.vector_norm(goal - ends, dim=-1)
        return distance[:, :1], distance[:, 1:]


def main():
    torch.manual_seed(13)
    with DEVICE:
        model = TransE()
    adagrad = optim.Adagrad(model.parameters(), lr=0.1)
    losses = []
    for facts in Facts(seed=1):
        right, wrong = model(*facts)
        loss = F.relu(1.0 + right - wrong).mean()
        adagrad.zero_grad(set_to_none=True)
        loss.backward()
        adagrad.step()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    print("margin loss: first", round(losses[0].item(), 4), "last", round(losses[-1].item(), 4))


main()
