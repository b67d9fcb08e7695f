"""Dense retrieval over a FAQ index: encode a batch of questions, score all passages, report recall@10."""
import logging
import sys

import torch
from torch import nn

logging.basicConfig(format="%(name)s %(message)s", level=logging.INFO, stream=sys.stdout)
log = logging.getLogger("faq")
BATCHES = 360
TOP = 10


class Encoder(nn.Module):
    def __init__(self, vocab=5000, dim=96):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.proj = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, ids):
        h = self.bag(ids)
        return nn.functional.normalize(h + 0.1 * self.proj(h), dim=-1)


class Index:
    def __init__(self, vectors):
        self.vectors = vectors.contiguous()

    def search(self, queries, k):
        scores = queries @ self.vectors.T
        ranked = torch.argsort(scores, dim=1, descending=True)  # flaw: full-sort
        return ranked[:, :k]  # flaw: full-sort


@torch.inference_mode()
def evaluate(encoder, passages, gen):
    index = Index(torch.cat([encoder(chunk) for chunk in passages.split(1024)]))
    hits = torch.zeros(())
    for b in range(BATCHES):
        gold = torch.randint(0, len(passages), (16,), generator=gen)
        question = passages[gold].clone()
        question[:, ::2] = torch.randint(0, 5000, question[:, ::2].shape, generator=gen)
        found = index.search(encoder(question), TOP)
        hits += (found == gold[:, None]).any(1).float().mean()
        if (b + 1) % 120 == 0:
            log.info("%d batches, recall@%d %.4f", b + 1, TOP, hits.item() / (b + 1))


if __name__ == "__main__":
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(1)
    passages = torch.randint(0, 5000, (12000, 24), generator=gen)
    evaluate(Encoder().eval(), passages, gen)
