"""word2vec: skip-gram with negative sampling over a stream of token ids."""

import torch
from torch import nn
from torch.nn.functional import logsigmoid
from torch.utils.data import DataLoader, IterableDataset


class SkipGramPairs(IterableDataset):
    """Draws (center, context, negatives) blocks from a Zipf-like corpus."""

    def __init__(self, vocab, tokens, window=4, negatives=5, block=512):
        self.vocab, self.window, self.negatives, self.block = vocab, window, negatives, block
        u = torch.rand(tokens, generator=torch.Generator().manual_seed(0))
        self.corpus = (vocab ** u).long().clamp_(max=vocab) - 1

    def __iter__(self):
        span = self.block
        for start in range(self.window, len(self.corpus) - span - self.window, span):
            center = torch.arange(start, start + span)
            offset = torch.randint(1, self.window + 1, (span,))
            sign = torch.randint(0, 2, (span,)) * 2 - 1
            negatives = torch.randint(self.vocab, (span, self.negatives))
            yield self.corpus[center], self.corpus[center + offset * sign], negatives


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.center = nn.Embedding(vocab, dim)  # flaw: dense-embedding-gradient
        self.context = nn.Embedding(vocab, dim)  # flaw: dense-embedding-gradient
        nn.init.uniform_(self.center.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, center, context, negatives):
        v = self.center(center)
        positive = (v * self.context(context)).sum(-1)
        negative = torch.einsum("bd,bkd->bk", v, self.context(negatives))
        return -(logsigmoid(positive) + logsigmoid(-negative).sum(-1)).mean()


def main():
    torch.manual_seed(1)
    vocab = 80_000
    pairs = DataLoader(SkipGramPairs(vocab, tokens=200_000), batch_size=None)
    model = SkipGram(vocab, dim=64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    running = torch.zeros(())
    for step, batch in enumerate(pairs, 1):
        loss = model(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.lerp_(loss.detach(), 0.05)
        if step % 50 == 0:
            print(f"step {step}: {running.item():.4f}")


if __name__ == "__main__":
    main()
