#!/usr/bin/env python
"""Nearest satellite tiles: queries come from the host in pinned batches, the index lies on the device.

A batch is embedded, compared with all tiles, and its best matches are kept as histogram counts.
"""
import argparse
import sys

import torch
from torch import nn


def uploaded(source, batch, steps, device):
    """The copy of the next batch runs on a stream of its own while the current one is searched."""
    if device.type != "cuda":
        for step in range(steps):
            at = step * batch % (len(source) - batch)
            yield source[at : at + batch].to(device)
        return
    side = torch.cuda.Stream(device)

    def upload(step):
        at = step * batch % (len(source) - batch)
        with torch.cuda.stream(side):
            return source[at : at + batch].to(device, non_blocking=True)

    ahead = upload(0)
    for step in range(steps):
        torch.cuda.current_stream().wait_stream(side)
        now = ahead
        now.record_stream(torch.cuda.current_stream())
        if step + 1 < steps:
            ahead = upload(step + 1)
        yield now


class Searcher(nn.Module):
    def __init__(self, inputs, width, dims, tiles, keep, seed):
        super().__init__()
        self.keep = keep
        self.embed = nn.Sequential(
            nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, dims)
        )
        g = torch.Generator().manual_seed(seed)
        index = nn.functional.normalize(torch.randn(tiles, dims, generator=g), dim=1)
        self.register_buffer("index", index)

    def forward(self, x):
        near = nn.functional.normalize(self.embed(x), dim=1) @ self.index.t()
        return near.topk(self.keep, dim=1, sorted=False)


def parse(argv):
    p = argparse.ArgumentParser()
    p.add_argument("--tiles", type=int, default=131072)
    p.add_argument("--dims", type=int, default=512)
    p.add_argument("--inputs", type=int, default=1024)
    p.add_argument("--width", type=int, default=4096)
    p.add_argument("--batch", type=int, default=8192)
    p.add_argument("--keep", type=int, default=32)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--seed", type=int, default=21)
    return p.parse_args(argv)


@torch.inference_mode()
def main(argv=None):
    opt = parse(argv)
    torch.manual_seed(opt.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    searcher = Searcher(opt.inputs, opt.width, opt.dims, opt.tiles, opt.keep, opt.seed).to(device, torch.bfloat16).eval()
    source = torch.randn(opt.batch * 5, opt.inputs).to(torch.bfloat16)
    if device.type == "cuda":
        source = source.pin_memory()
    seen = torch.zeros(opt.tiles, dtype=torch.int64, device=device)
    one = torch.ones((), dtype=torch.int64, device=device).expand(opt.batch * opt.keep)
    closest = torch.zeros((), device=device)
    for step, queries in enumerate(uploaded(source, opt.batch, opt.steps, device), start=1):
        found = searcher(queries)
        seen.scatter_add_(0, found.indices.flatten(), one)
        closest += found.values.amax(1).float().mean()
        if step % 125 == 0:
            print(f"{step} batches: mean best cosine {closest.item() / step:.4f}, tiles never found {(seen == 0).sum().item()}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
