# Routes support tickets to queues: a small encoder over word pieces.
import os
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

S = "SMALL" in os.environ
DEV = "cuda" if torch.cuda.is_available() else "cpu"
MAXLEN, DIM, LAYERS, BATCH, STEPS = (64, 32, 1, 8, 30) if S else (1024, 512, 6, 48, 150)
QUEUES = 12


class Tickets(Dataset):
    def __init__(self, n, seed=3):
        r = random.Random(seed)
        self.lengths = [max(8, min(MAXLEN, int(r.lognormvariate(4.6, 0.7)))) for _ in range(n)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        ids = torch.randint(1, 8000, (self.lengths[i],), generator=g)
        return ids, int(ids[0]) % QUEUES


class SimilarLength(Sampler):
    """Batches whose members have about the same length, in random order."""

    def __init__(self, lengths, batch):
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.groups = [order[i : i + batch] for i in range(0, len(order) - batch + 1, batch)]

    def __len__(self):
        return len(self.groups)

    def __iter__(self):
        return iter(random.Random(0).sample(self.groups, len(self.groups)))


class Stack:
    def __init__(self, limit, multiple=32):
        self.limit, self.multiple = limit, multiple

    def width(self, rows):
        longest = max(len(r) for r in rows)
        return min(self.limit, -(-longest // self.multiple) * self.multiple)

    def __call__(self, items):
        rows, labels = zip(*items)
        ids = torch.zeros(len(rows), self.width(rows), dtype=torch.long)
        for i, r in enumerate(rows):
            ids[i, : len(r)] = r
        return ids, torch.tensor(labels)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.o = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, mask):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, DIM // 32, 32)).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o(a.transpose(1, 2).flatten(2))
        return x + self.ff(self.n2(x))


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(8000, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.cls = nn.Linear(DIM, QUEUES)

    def forward(self, ids):
        real = ids != 0
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x, real[:, None, None, :])
        weight = real.unsqueeze(-1).to(x.dtype)
        return self.cls((x * weight).sum(1) / weight.sum(1))


if __name__ == "__main__":
    torch.manual_seed(0)
    data = Tickets(BATCH * STEPS)
    loader = DataLoader(data, batch_sampler=SimilarLength(data.lengths, BATCH), collate_fn=Stack(MAXLEN),
                        num_workers=1 if S else 8, pin_memory=DEV == "cuda")
    net = Router().to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    for i, (ids, y) in enumerate(loader):
        ids, y = ids.to(DEV, non_blocking=True), y.to(DEV, non_blocking=True)
        with torch.autocast(DEV, torch.bfloat16):
            loss = F.cross_entropy(net(ids), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 50 == 0:
            print(i, round(loss.item(), 3))
