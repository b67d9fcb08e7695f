import numpy as np
import torch
from torch.utils.data import Dataset, Sampler


class QueryPassagePairs(Dataset):
    """Tokenized pairs: queries of a few lengths, passages cut to `passage_len` tokens."""

    def __init__(self, count, vocab_size, query_lens, passage_len, seed=0):
        rng = np.random.default_rng(seed)
        self.lengths = rng.choice(query_lens, count)
        self.queries = [rng.integers(5, vocab_size, n, dtype=np.int32) for n in self.lengths]
        self.passages = rng.integers(5, vocab_size, (count, passage_len), dtype=np.int32)

    def __len__(self):
        return len(self.queries)

    def __getitem__(self, i):
        return self.queries[i], self.passages[i]


class SameLengthBatches(Sampler):
    """Batches whose queries all have the same number of tokens, so that nothing is padded."""

    def __init__(self, lengths, batch_size, seed=0):
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)
        self.count = sum(int((self.lengths == n).sum()) // batch_size for n in np.unique(self.lengths))

    def __len__(self):
        return self.count

    def __iter__(self):
        batches = []
        for n in np.unique(self.lengths):
            rows = self.rng.permutation(np.flatnonzero(self.lengths == n))
            full = len(rows) // self.batch_size * self.batch_size
            batches += [b.tolist() for b in rows[:full].reshape(-1, self.batch_size)]
        for k in self.rng.permutation(len(batches)):
            yield batches[k]


def collate(pairs):
    queries, passages = zip(*pairs)
    return (
        torch.from_numpy(np.stack(queries)).long(),
        torch.from_numpy(np.stack(passages)).long(),
    )
