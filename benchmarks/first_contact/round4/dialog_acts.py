"""Left-to-right tagging of dialogue acts: each token gets the act of the utterance that it belongs to."""
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
LIMIT = 64 if SMALL else 512
IGNORE = -100
ACTS = 44


class Dialogues(Dataset):
    def __init__(self, n, vocab, seed):
        rng = random.Random(seed)
        self.lengths = [max(8, min(LIMIT // 2, int(rng.lognormvariate(4.2 if not SMALL else 2.5, 0.45)))) for _ in range(n)]
        gen = torch.Generator().manual_seed(seed)
        self.words = torch.randint(1, vocab, (n, LIMIT), generator=gen)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        words = self.words[i, : self.lengths[i]]
        return words, words % ACTS


def collate(items):
    words = torch.zeros(len(items), LIMIT, dtype=torch.long)  # flaw: padded-batches
    acts = torch.full((len(items), LIMIT), IGNORE)  # flaw: padded-batches
    for row, (w, a) in enumerate(items):
        words[row, : len(w)] = w
        acts[row, : len(a)] = a
    return words, acts


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1 = nn.LayerNorm(dim)
        self.n2 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.o = nn.Linear(dim, dim)
        self.f = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.f(self.n2(x))


class ActTagger(nn.Module):
    def __init__(self, vocab, dim, depth, heads):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(LIMIT, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.out = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, ACTS + 4))

    def forward(self, words):
        return self.out(self.blocks(self.emb(words) + self.pos[: words.size(1)]))


def main():
    vocab, dim, depth, heads, batch, steps = (128, 32, 1, 2, 4, 30) if SMALL else (4096, 512, 8, 8, 64, 80)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    data = Dialogues(batch * steps, vocab, 1)
    workers = 1 if SMALL else 4
    loader = DataLoader(data, batch, shuffle=True, drop_last=True, collate_fn=collate, num_workers=workers,
                        pin_memory=device.type == "cuda", persistent_workers=True)
    model = ActTagger(vocab, dim, depth, heads).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    total = torch.zeros((), device=device)
    for words, acts in loader:
        words = words.to(device, non_blocking=True)
        acts = acts.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(words)
        loss = F.cross_entropy(scores.float().flatten(0, 1), acts.flatten(), ignore_index=IGNORE)
        loss.backward()
        opt.step()
        opt.zero_grad()
        total += loss.detach()
    print("mean loss", total.item() / len(loader))


if __name__ == "__main__":
    main()
