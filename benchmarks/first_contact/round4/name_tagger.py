"""Named-entity tagging with a bidirectional LSTM; sentences of similar length share a batch."""
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

SMALL = os.environ.get("SMALL") == "1"
TAGS = 24
SKIP = -100


class Sentences(Dataset):
    def __init__(self, n, vocab, longest):
        rng = random.Random(3)
        self.lengths = [max(5, min(longest, int(rng.gammavariate(3.0, longest / 9)))) for _ in range(n)]
        self.bank = torch.randint(1, vocab, (200_000,), generator=torch.Generator().manual_seed(3))
        self.start = [rng.randrange(200_000 - longest) for _ in range(n)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        words = self.bank[self.start[i]:self.start[i] + self.lengths[i]]
        return words, words % TAGS


class SimilarLengths(Sampler):
    def __init__(self, lengths, batch, seed=0):
        self.batch, self.seed = batch, seed
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.groups = [order[i:i + batch] for i in range(0, len(order) - batch + 1, batch)]

    def __len__(self):
        return len(self.groups)

    def __iter__(self):
        groups = list(self.groups)
        random.Random(self.seed).shuffle(groups)
        self.seed += 1
        return iter(groups)


def collate(items):
    width = (max(len(w) for w, _ in items) + 7) // 8 * 8
    words = torch.zeros(len(items), width, dtype=torch.long)
    tags = torch.full((len(items), width), SKIP)
    for i, (w, t) in enumerate(items):
        words[i, :len(w)] = w
        tags[i, :len(t)] = t
    return words, tags


class NameTagger(nn.Module):
    def __init__(self, vocab, dim, layers):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, dim // 2, layers, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, TAGS)

    def forward(self, words):
        return self.out(self.norm(self.lstm(self.emb(words))[0]))


def main():
    vocab, dim, layers, longest, batch, batches = (128, 16, 1, 32, 4, 15) if SMALL else (8192, 768, 3, 128, 512, 40)
    epochs = 2
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    data = Sentences(batch * batches, vocab, longest)
    loader = DataLoader(data, batch_sampler=SimilarLengths(data.lengths, batch), collate_fn=collate,
                        num_workers=1 if SMALL else 6, pin_memory=device.type == "cuda", persistent_workers=True)
    model = NameTagger(vocab, dim, layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(epochs):
        total = torch.zeros((), device=device)
        for words, tags in loader:
            words, tags = words.to(device, non_blocking=True), tags.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
                scores = model(words)
            loss = F.cross_entropy(scores.float().flatten(0, 1), tags.flatten(), ignore_index=SKIP)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
