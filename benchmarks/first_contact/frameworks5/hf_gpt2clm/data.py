import numpy as np
import torch
from torch.utils.data import Dataset


def synthetic_corpus(n_tokens, vocab_size, seed=0):
    """Zipf-like token stream, as a tokenized dump would be stored."""
    rng = np.random.default_rng(seed)
    ranks = np.minimum(rng.zipf(1.3, n_tokens), vocab_size) - 1
    return ranks.astype(np.uint16)


class PackedBlocks(Dataset):
    """Documents are concatenated and cut into blocks of `block_size` tokens."""

    def __init__(self, tokens, block_size):
        self.tokens = tokens
        self.block_size = block_size

    def __len__(self):
        return len(self.tokens) // self.block_size

    def __getitem__(self, i):
        start = i * self.block_size
        block = self.tokens[start : start + self.block_size].astype(np.int64)
        ids = torch.from_numpy(block)
        return {"input_ids": ids, "labels": ids}
