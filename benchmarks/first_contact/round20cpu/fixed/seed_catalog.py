"""Plant family from the blurbs of a seed catalogue with a GRU and bucketed batches."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

PAD = 0
MAX_LEN = 120


class Blurbs(Dataset):
    def __init__(self, n=3200, vocab=1500, families=7, seed=0):
        rng = np.random.default_rng(seed)
        lengths = np.clip(rng.lognormal(3.2, 0.5, n), 6, MAX_LEN).astype(int)
        self.labels = rng.integers(0, families, n)
        self.texts = []
        for length, family in zip(lengths, self.labels):
            words = rng.integers(1, vocab, length)
            own = rng.random(length) < 0.15
            words[own] = 1 + family * 20 + rng.integers(0, 20, own.sum())
            self.texts.append(torch.from_numpy(words))

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i], int(self.labels[i])


class BucketBatchSampler(Sampler):
    """Shuffles, sorts pools of some batches by length, and shuffles the batches."""

    def __init__(self, lengths, batch_size, pool=25, seed=0):
        self.lengths, self.batch_size, self.pool = np.asarray(lengths), batch_size, pool
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.lengths) // self.batch_size

    def __iter__(self):
        order = self.rng.permutation(len(self.lengths))
        batches = []
        for at in range(0, len(order), self.batch_size * self.pool):
            pool = order[at:at + self.batch_size * self.pool]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            batches += [pool[b:b + self.batch_size].tolist() for b in range(0, len(pool), self.batch_size)]
        self.rng.shuffle(batches)
        yield from batches


class PadCollate:
    def __init__(self, max_len, pad=PAD):
        self.max_len, self.pad = max_len, pad

    def __call__(self, samples):
        texts, labels = zip(*samples)
        width = min(self.max_len, max(map(len, texts)))
        ids = torch.full((len(texts), width), self.pad)
        for row, text in zip(ids, texts):
            row[:len(text)] = text[:width]
        return ids, torch.tensor(labels)


class FamilyTagger(nn.Module):
    def __init__(self, vocab, families, dim=48, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, families)

    def forward(self, ids):
        real = (ids != PAD).unsqueeze(-1).float()
        states, _ = self.rnn(self.emb(ids))
        return self.out((states * real).sum(1) / real.sum(1))


def main(epochs=6, batch_size=32):
    torch.manual_seed(0)
    data = Blurbs()
    sampler = BucketBatchSampler([len(t) for t in data.texts], batch_size)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=PadCollate(MAX_LEN))
    model = FamilyTagger(1500, 7)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
    loss_fn = nn.CrossEntropyLoss()
    step = 0
    for epoch in range(epochs):
        hits = seen = 0
        for ids, family in loader:
            scores = model(ids)
            loss = loss_fn(scores, family)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            hits += (scores.argmax(1) == family).sum().item()
            seen += len(family)
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} acc {hits / seen:.3f}")


if __name__ == "__main__":
    main()
