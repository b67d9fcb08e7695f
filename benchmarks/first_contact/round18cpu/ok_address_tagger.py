"""Tag the parts of postal addresses, character by character (well made; the data are in memory and small, so no workers)."""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TINY = os.environ.get("TINY") == "1"


class Tagger(nn.Module):
    def __init__(self, chars=100, width=32 if TINY else 96, tags=8):
        super().__init__()
        self.chars = nn.Embedding(chars, width)
        self.read = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * width, tags)

    def forward(self, text):
        return self.tag(self.read(self.chars(text))[0])


def addresses(count, length):
    gen = torch.Generator().manual_seed(2)
    text = torch.randint(100, (count, length), generator=gen)
    return TensorDataset(text, (text // 13).clamp(max=7))


def train(epochs=1 if TINY else 4):
    torch.manual_seed(0)
    archive = addresses(64 if TINY else 800, 20 if TINY else 40)
    loader = DataLoader(archive, batch_size=32, shuffle=True)
    tagger = Tagger()
    optimizer = torch.optim.AdamW(tagger.parameters(), lr=2e-3, fused=True)
    began, steps, total = time.perf_counter(), 0, torch.zeros(())
    for _ in range(epochs):
        for text, tags in loader:
            loss = F.cross_entropy(tagger(text).flatten(0, 1), tags.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
    print(f"{(time.perf_counter() - began) / steps * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"mean loss {total.item() / steps:.3f} over {steps} steps")


train()
