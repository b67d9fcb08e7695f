"""Contrastive training of a query tower and a document tower with in-batch negatives."""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

small = os.environ.get("SMALL") is not None
WORDS, QLEN, DLEN, DIM, DEPTH, BATCH, STEPS = (200, 4, 8, 32, 1, 8, 30) if small else (16000, 32, 128, 512, 4, 256, 120)


class Pairs(Dataset):
    """Batches of word ids; one item is one batch."""

    def __len__(self):
        return STEPS

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        docs = rng.integers(0, WORDS, (BATCH, DLEN))
        return torch.from_numpy(docs[:, :QLEN].copy()), torch.from_numpy(docs)


class Tower(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.words = nn.Embedding(WORDS, DIM)
        self.place = nn.Parameter(torch.zeros(length, DIM))
        layer = nn.TransformerEncoderLayer(DIM, DIM // 32, 4 * DIM, 0.0, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)

    def forward(self, ids):
        return F.normalize(self.body(self.words(ids) + self.place).mean(1), dim=1)


class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.doc = Tower(QLEN), Tower(DLEN)
        self.scale = nn.Parameter(torch.tensor(3.0))

    def forward(self, q, d):
        return self.scale.exp() * self.query(q) @ self.doc(d).T


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Search().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loader = DataLoader(Pairs(), batch_size=None, num_workers=1 if small else 4, pin_memory=device.type == "cuda")
    match = torch.arange(BATCH, device=device)
    for i, (q, d) in enumerate(loader):
        q, d = q.to(device, non_blocking=True), d.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16):
            scores = model(q, d)
        loss = (F.cross_entropy(scores.float(), match) + F.cross_entropy(scores.float().T, match)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 40 == 0:
            print(i, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
