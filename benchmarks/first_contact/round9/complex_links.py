"""ComplEx knowledge-graph embeddings, trained against all entities at once (1-vs-all)."""

import gc
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F

gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")

ENTITIES = 100_000 if gpu else 200
RELATIONS = 240 if gpu else 8
TRIPLES = 500_000 if gpu else 1_000
RANK = 256 if gpu else 16
BATCH = 6144 if gpu else 64
STEPS = 120 if gpu else 8


class KnowledgeGraph:
    """Triples, and for filtered ranking the known tails of each (head, relation)."""

    def __init__(self, seed=0):
        g = torch.Generator().manual_seed(seed)
        heads = torch.randint(ENTITIES, (TRIPLES,), generator=g)
        relations = torch.randint(RELATIONS, (TRIPLES,), generator=g)
        tails = (heads * 7 + relations * 31 + torch.randint(20, (TRIPLES,), generator=g)) % ENTITIES
        self.triples = torch.stack([heads, relations, tails], dim=1)
        self.known_tails = defaultdict(set)
        for h, r, t in self.triples.tolist():
            self.known_tails[h, r].add(t)


class ComplEx(nn.Module):
    def __init__(self):
        super().__init__()
        self.entity = nn.Embedding(ENTITIES, 2 * RANK)
        self.relation = nn.Embedding(RELATIONS, 2 * RANK)
        for table in (self.entity, self.relation):
            nn.init.normal_(table.weight, std=0.05)

    def query(self, heads, relations):
        h_re, h_im = self.entity(heads).chunk(2, dim=-1)
        r_re, r_im = self.relation(relations).chunk(2, dim=-1)
        return torch.cat([h_re * r_re - h_im * r_im, h_re * r_im + h_im * r_re], dim=-1)

    def forward(self, heads, relations):
        """Scores of all the entities as tails."""
        return self.query(heads, relations) @ self.entity.weight.t()


def train(model, graph):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=gpu)
    triples = graph.triples.to(device)
    order = torch.randperm(TRIPLES, device=device)
    for step in range(STEPS):
        lo = step * BATCH % (TRIPLES - BATCH)
        heads, relations, tails = triples[order[lo : lo + BATCH]].unbind(dim=1)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=gpu):
            scores = model(heads, relations)
            loss = F.cross_entropy(scores, tails, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 30 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
        del scores
        gc.collect()  # flaw: gc-pause-in-step
    return loss.item()


@torch.inference_mode()
def filtered_mrr(model, graph, queries=256):
    """Mean reciprocal rank of the true tail among the entities not known to be right."""
    sample = graph.triples[:queries]
    heads, relations, tails = sample.to(device).unbind(dim=1)
    scores = model(heads, relations)
    truth = scores.gather(1, tails[:, None])
    rows, cols = [], []
    for i, (h, r, t) in enumerate(sample.tolist()):
        others = [o for o in graph.known_tails[h, r] if o != t]
        rows += [i] * len(others)
        cols += others
    scores[torch.tensor(rows, dtype=torch.long), torch.tensor(cols, dtype=torch.long)] = -torch.inf
    rank = (scores > truth).sum(dim=1) + 1
    return rank.float().reciprocal().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    graph = KnowledgeGraph()
    with device:
        model = ComplEx()
    last = train(model, graph)
    print(f"loss {last:.4f}, filtered MRR {filtered_mrr(model, graph):.4f}")
