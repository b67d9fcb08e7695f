"""Bidders and auction lots: two towers trained on pairs (what a bidder looked at, what was bought) with in-batch negatives."""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

LOTS, FEATURES = 800_000, 384


class Sales(Dataset):
    """One item is a whole batch: rows of two half-precision feature tables that the workers share."""

    def __init__(self, batches, size):
        rng = torch.Generator().manual_seed(2)
        self.lots = torch.randn(LOTS // 8, FEATURES, generator=rng).half()
        turn = torch.randn(FEATURES, FEATURES, generator=rng) / FEATURES**0.5
        self.bidders = (self.lots.float() @ turn).half()
        self.batches, self.size = batches, size

    def __len__(self):
        return self.batches

    def __getitem__(self, number):
        rng = np.random.default_rng(number)
        ids = (LOTS * rng.random(self.size) ** 2).astype(np.int64)
        rows = torch.from_numpy(ids // 8)
        return {
            "bidder": self.bidders.index_select(0, rows),
            "lot": self.lots.index_select(0, rows),
            "group": rows,
            "ids": torch.from_numpy(ids),
        }


class Exposure:
    """How often each lot was shown, with a slow decay. It stays on the host: the report reads its quantiles."""

    def __init__(self):
        self.shown = np.zeros(LOTS, dtype=np.float32)

    def note(self, ids):
        self.shown *= 0.9995
        self.shown += np.bincount(ids, minlength=LOTS)
        self.share = float((self.shown > 0.5).mean())


class Tower(nn.Module):
    def __init__(self, width=2048, depth=4, out=256):
        super().__init__()
        layers, last = [], FEATURES
        for _ in range(depth):
            layers += [nn.Linear(last, width), nn.LayerNorm(width), nn.GELU()]
            last = width
        self.layers = nn.Sequential(*layers, nn.Linear(width, out))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


def aboard(batch, device):
    """The entries that the device needs; the rest stays where it is."""
    return {name: batch[name].to(device) for name in ("bidder", "lot", "group")}  # flaw: blocking-host-copy


def contrast(bidders, lots, here, own, temperature=0.05):
    scores = (bidders(here["bidder"]) / temperature) @ lots(here["lot"]).T
    twins = here["group"][:, None] == here["group"]
    scores = scores.masked_fill(twins.fill_diagonal_(False), -1e4)
    return F.cross_entropy(scores, own)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=700)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--workers", type=int, default=10)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    loader = DataLoader(
        Sales(args.batches, args.size),
        batch_size=None,
        num_workers=args.workers,
        prefetch_factor=4,
        pin_memory=device == "cuda",
    )
    bidders, lots = Tower(args.width).to(device), Tower(args.width).to(device)
    optimizer = torch.optim.AdamW([*bidders.parameters(), *lots.parameters()], lr=2e-4, fused=True)
    exposure = Exposure()
    own = torch.arange(args.size, device=device)
    began = time.perf_counter()
    for step, batch in enumerate(loader, 1):
        here = aboard(batch, device)
        exposure.note(batch["ids"].numpy())
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = contrast(bidders, lots, here, own)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            each = (time.perf_counter() - began) / step * 1e3
            print(f"{step:4d}  loss {loss.item():.3f}  shown {exposure.share:.1%}  {each:.1f} ms")


if __name__ == "__main__":
    main()
