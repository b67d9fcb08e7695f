"""Land use from satellite tiles, which a tile server holds (here: a stand-in with its round trip)."""
import argparse
import os
import sys
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TileServer:
    """Answers like the real one: compressed bytes, after a round trip."""

    def __init__(self, count, side, latency):
        rng = np.random.default_rng(0)
        self.kinds = rng.integers(0, 5, count)
        self.latency = latency
        base = rng.integers(0, 200, (5, 4, side, side), dtype=np.uint8)
        self.blobs = [zlib.compress((base[k] + rng.integers(0, 40, dtype=np.uint8)).tobytes(), 1) for k in self.kinds]

    def get(self, key):
        time.sleep(self.latency)
        return self.blobs[key]


class Tiles(Dataset):
    def __init__(self, server, side):
        self.server, self.shape = server, (4, side, side)

    def __len__(self):
        return len(self.server.kinds)

    def __getitem__(self, key):
        raw = np.frombuffer(zlib.decompress(self.server.get(key)), dtype=np.uint8)
        return torch.from_numpy(raw.reshape(self.shape).astype(np.float32) / 255), int(self.server.kinds[key])


def make_loader(dataset, batch, **extra):
    options = dict(batch_size=batch, shuffle=True, drop_last=True, num_workers=2, persistent_workers=True)
    options.update(extra)
    return DataLoader(dataset, **options)


def network():
    return nn.Sequential(
        nn.Conv2d(4, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        nn.Conv2d(16, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5),
    ).to(memory_format=torch.channels_last)


def main(args):
    torch.manual_seed(0)
    loader = make_loader(Tiles(TileServer(args.tiles, args.side, 0.0015), args.side), args.batch)
    net = network()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
    count, began = 0, time.perf_counter()
    for _ in range(args.epochs):
        for tiles, kinds in loader:
            loss = nn.functional.cross_entropy(net(tiles.contiguous(memory_format=torch.channels_last)), kinds)
            opt.zero_grad()
            loss.backward()
            opt.step()
            count += 1
    print(f"{(time.perf_counter() - began) / count * 1e3:.1f} ms", file=sys.stderr)
    print(f"{count} steps, loss {loss.item():.3f}")


if __name__ == "__main__":
    tiny = os.environ.get("TINY") == "1"
    p = argparse.ArgumentParser()
    p.add_argument("--tiles", type=int, default=32 if tiny else 640)
    p.add_argument("--side", type=int, default=16 if tiny else 96)
    p.add_argument("--batch", type=int, default=8 if tiny else 24)
    p.add_argument("--epochs", type=int, default=1 if tiny else 5)
    main(p.parse_args())
