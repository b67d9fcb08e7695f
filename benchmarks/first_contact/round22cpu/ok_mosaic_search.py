"""Looks up mosaic fragments in a catalogue: embed photographs, then the nearest catalogue entries."""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    """Patches of the photograph, mixed by two wide layers, as a unit vector."""

    def __init__(self, side=32, patch=4, dim=192, out=96):
        super().__init__()
        self.cut = nn.Conv2d(3, dim, patch, stride=patch)
        self.tokens = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.out = nn.Linear(dim, out)

    def forward(self, photos):
        h = self.cut(photos).flatten(2).mT
        h = h + self.tokens(h)
        return F.normalize(self.out(h.mean(1)), dim=1)


class Catalogue:
    def __init__(self, tower, device, entries, seed):
        self.device = device
        self.rng = torch.Generator(device).manual_seed(seed)
        self.tower = tower.to(device).eval()
        self.photos = torch.rand(entries, 3, 32, 32, device=device, generator=self.rng)
        self.index = None

    @torch.inference_mode()
    def build(self, rows=256):
        self.index = torch.cat([self.tower(part) for part in self.photos.split(rows)])
        centre = self.index.mean(0)
        self.index = F.normalize(self.index - centre, dim=1).T.contiguous()
        self.centre = centre

    @torch.inference_mode()
    def look_up(self, photos, k):
        asked = F.normalize(self.tower(photos) - self.centre, dim=1)
        return (asked @ self.index).topk(k, dim=1)

    def worn(self, rows, wear):
        """Fragments as found: catalogue photographs with noise."""
        truth = torch.randint(len(self.photos), (rows,), device=self.device, generator=self.rng)
        clean = self.photos[truth]
        return clean + wear * torch.randn(clean.shape, device=self.device, generator=self.rng), truth


def serve(catalogue, args):
    hits, begin = torch.zeros((), device=catalogue.device), time.perf_counter()
    for batch in range(1, args.batches + 1):
        photos, truth = catalogue.worn(args.rows, args.wear)
        best = catalogue.look_up(photos, args.top)
        hits += (best.indices == truth[:, None]).any(1).float().mean()
        if batch % args.report == 0:
            ms = (time.perf_counter() - begin) / args.report * 1e3
            print(f"{batch:4d} batches, found {hits.item() / args.report:.4f}, {ms:.1f} ms", flush=True)
            hits.zero_()
            begin = time.perf_counter()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--entries", type=int, default=6000)
    ap.add_argument("--rows", type=int, default=64)
    ap.add_argument("--top", type=int, default=8)
    ap.add_argument("--wear", type=float, default=0.3)
    ap.add_argument("--batches", type=int, default=240)
    ap.add_argument("--report", type=int, default=30)
    args = ap.parse_args()
    torch.manual_seed(110)
    torch.set_float32_matmul_precision("high")
    catalogue = Catalogue(Tower(), "cuda" if torch.cuda.is_available() else "cpu", args.entries, 111)
    catalogue.build()
    serve(catalogue, args)
