"""Sentiment of variable-length reviews from a sharded binary archive; every worker opens and indexes the archive lazily."""
import os
import struct
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCAB, LENGTH, ITEMS, EPOCHS = 4000, 96, 4096, 32
LOADER = {
    "batch_size": 128,
    "shuffle": True,
    "drop_last": True,
    "num_workers": 2,
    "persistent_workers": False,  # flaw: loader-workers-restart
}


def write_archive(path, rng):
    """Records of (key, label, tokens), preceded by nothing: the reader has to walk the file."""
    lean = rng.integers(0, 2, VOCAB)
    with open(path, "wb") as f:
        for key in range(ITEMS):
            tokens = rng.integers(0, VOCAB, LENGTH, dtype=np.uint16)
            label = int(lean[tokens].mean() > 0.5)
            f.write(struct.pack("<IBH", key, label, LENGTH) + tokens.tobytes())
        for filler in range(120_000):
            f.write(struct.pack("<IBH", ITEMS + filler, 0, 4) + b"\0" * 8)


class Archive(Dataset):
    def __init__(self, path):
        self.path = path
        self.blob = None
        self.where = None

    def _open(self):
        with open(self.path, "rb") as f:
            self.blob = f.read()
        self.where, at, end = {}, 0, len(self.blob)
        unpack = struct.Struct("<IBH").unpack_from
        while at < end:
            key, label, n = unpack(self.blob, at)
            self.where[key] = (at + 7, n, label)
            at += 7 + 2 * n

    def __len__(self):
        return ITEMS

    def __getitem__(self, key):
        if self.blob is None:
            self._open()
        at, n, label = self.where[key]
        tokens = np.frombuffer(self.blob, np.uint16, n, at).astype(np.int64)
        return tokens, np.float32(label)


class Reviewer(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCAB, dim, mode="mean", sparse=True)
        self.head = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, tokens):
        return self.head(self.bag(tokens)).squeeze(-1)


def main():
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "reviews.bin")
        write_archive(path, np.random.default_rng(1))
        loader = DataLoader(Archive(path), **LOADER)
        model = Reviewer()
        opt = torch.optim.SGD(model.parameters(), lr=2.0)
        for epoch in range(EPOCHS):
            total = torch.zeros(())
            for tokens, label in loader:
                loss = F.binary_cross_entropy_with_logits(model(tokens), label)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.detach()
        print("last epoch", round(float(total) / len(loader), 4))


if __name__ == "__main__":
    main()
