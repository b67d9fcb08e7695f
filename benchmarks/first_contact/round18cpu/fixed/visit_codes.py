"""Predicts readmission from the diagnosis codes of a patient's visits."""
import os
import sys
import time
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
CONF = SimpleNamespace(codes=800, width=64, heads=4, depth=2, longest=256, rows=16, patients=64 if TINY else 1280)


class Patients(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(2)
        sizes = torch.randint(70, 111, (count - 1,), generator=g).tolist() + [240]
        self.codes = [torch.randint(1, CONF.codes, (n,), generator=g) for n in sizes]

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, i):
        c = self.codes[i]
        return c, float((c < 90).float().mean() > 0.11)


class Collate:
    def __init__(self, longest):
        self.longest = longest

    def __call__(self, samples):
        codes, labels = zip(*samples)
        ids = torch.zeros(len(codes), min(self.longest, max(map(len, codes))), dtype=torch.long)
        for row, c in zip(ids, codes):
            row[: len(c)] = c
        return ids, torch.tensor(labels)


class Block(nn.Module):
    def __init__(self, w, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(w), nn.LayerNorm(w)
        self.qkv, self.out = nn.Linear(w, 3 * w), nn.Linear(w, w)
        self.ffn = nn.Sequential(nn.Linear(w, 4 * w), nn.ReLU(), nn.Linear(4 * w, w))

    def forward(self, x, seen):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.ffn(self.n2(x))


class Readmission(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.emb = nn.Embedding(c.codes, c.width, padding_idx=0)
        self.blocks = nn.ModuleList(Block(c.width, c.heads) for _ in range(c.depth))
        self.head = nn.Linear(c.width, 1)

    def forward(self, ids):
        real = ids.ne(0)
        x = self.emb(ids)
        for block in self.blocks:
            x = block(x, real[:, None, None, :])
        pooled = torch.einsum("btw,bt->bw", x, real.to(x.dtype)) / real.sum(1, keepdim=True)
        return self.head(pooled).squeeze(1)


def main():
    torch.manual_seed(0)
    net = Readmission(CONF)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    loader = DataLoader(Patients(CONF.patients), CONF.rows, shuffle=True, collate_fn=Collate(CONF.longest), num_workers=1)
    total, n, began = 0.0, 0, time.perf_counter()
    for ids, labels in loader:
        loss = F.binary_cross_entropy_with_logits(net(ids), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, n = total + loss.item(), n + 1
    print(f"{(time.perf_counter() - began) / n * 1e3:.1f} ms", file=sys.stderr)
    print(f"mean loss {total / n:.4f}")


if __name__ == "__main__":
    main()
