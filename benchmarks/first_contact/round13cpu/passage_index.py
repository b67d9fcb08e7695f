"""Request loop of a passage search service: queries are grouped, embedded and matched against an index in memory."""
from collections import deque
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Request:
    key: int
    tokens: torch.Tensor


@dataclass
class Stats:
    served: int = 0
    hits: int = 0
    keys: list[int] = field(default_factory=list)


class QueryEncoder(nn.Module):
    def __init__(self, vocab=20_000, dim=192):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, flat, offsets):
        bag = self.bag(flat, offsets)
        return nn.functional.normalize(bag + self.mlp(bag), dim=-1)


class Service:
    def __init__(self, encoder, passages, group=128, k=10):
        self.encoder, self.group, self.k = encoder.eval(), group, k
        self.index = passages.t().contiguous()
        self.queue: deque[Request] = deque()
        self.stats = Stats()

    def submit(self, request):
        self.queue.append(request)

    @torch.inference_mode()
    def serve(self):
        batch = [self.queue.popleft() for _ in range(min(self.group, len(self.queue)))]
        lengths = torch.tensor([0] + [len(r.tokens) for r in batch[:-1]])
        query = self.encoder(torch.cat([r.tokens for r in batch]), lengths.cumsum(0))
        found = torch.topk(query @ self.index, self.k, dim=1).indices.tolist()
        self.stats.served += len(batch)
        self.stats.hits += sum(r.key in f for r, f in zip(batch, found))
        return found


@torch.inference_mode()
def build(encoder, texts):
    flat = texts.flatten()
    offsets = torch.arange(0, flat.numel(), texts.shape[1])
    return encoder(flat, offsets)


def main(passages=24_000, rounds=560, group=128):
    torch.manual_seed(71)
    gen = torch.Generator().manual_seed(71)
    encoder = QueryEncoder()
    texts = torch.randint(0, 20_000, (passages, 24), generator=gen)
    service = Service(encoder, build(encoder, texts), group)
    for _ in range(rounds):
        keys = torch.randint(0, passages, (group,), generator=gen).tolist()
        for key in keys:
            service.submit(Request(key, texts[key, :8 + key % 9]))
        service.serve()
    print("served", service.stats.served, "recall", round(service.stats.hits / service.stats.served, 4))


if __name__ == "__main__":
    main()
