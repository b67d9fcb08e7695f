"""Fine-tune a tile classifier on crops of a few slides: short epochs, a metric after each."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

torch.backends.cudnn.benchmark = True


class SlideTiles(Dataset):
    """Crops of in-memory slides (uint8, height x width x 3), fixed positions, labels from the position."""

    def __init__(self, n_tiles, tile, slide_side, seed=0):
        rng = np.random.default_rng(seed)
        self.tile = tile
        self.slides = rng.integers(0, 255, (3, slide_side, slide_side, 3), dtype=np.uint8)
        self.where = rng.integers(0, slide_side - tile, (n_tiles, 2))
        self.slide_of = rng.integers(0, 3, n_tiles)
        self.labels = (self.where[:, 0] // 16 + self.slide_of) % 16

    def __len__(self):
        return len(self.where)

    def __getitem__(self, i):
        y, x = self.where[i]
        crop = self.slides[self.slide_of[i], y:y + self.tile, x:x + self.tile]
        if i % 2:
            crop = crop[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(crop)), int(self.labels[i])


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(y)).add_(x), inplace=True)


class TileNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        layers = [nn.Conv2d(3, width, 4, stride=4, bias=False), nn.BatchNorm2d(width)]
        for stage in range(3):
            channels = width << stage
            layers += [Residual(channels) for _ in range(depth)]
            if stage < 2:
                layers.append(nn.Conv2d(channels, channels * 2, 2, stride=2))
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width * 4, 16)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Trainer:
    def __init__(self, args, device):
        self.device = device
        self.epochs = args.epochs
        data = SlideTiles(args.tiles, args.tile, args.slide_side)
        order = RandomSampler(data, generator=torch.Generator().manual_seed(args.seed))
        self.loader = DataLoader(  # flaw: loader-workers-restart
            data, batch_size=args.batch, sampler=order, drop_last=True,
            num_workers=args.workers, prefetch_factor=4,  # flaw: loader-workers-restart
            pin_memory=device.type == "cuda",
        )
        model = TileNet(args.width, args.depth)
        self.model = model.to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9, fused=True)

    def prepare(self, tiles, labels):
        tiles = tiles.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
        labels = labels.to(self.device, non_blocking=True)
        return tiles.to(torch.bfloat16).mul_(1 / 127.5).sub_(1), labels

    def run_epoch(self):
        total = torch.zeros((), device=self.device)
        for batch in self.loader:
            tiles, labels = self.prepare(*batch)
            with torch.autocast(self.device.type, torch.bfloat16):
                loss = F.cross_entropy(self.model(tiles), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return total.item() / len(self.loader)

    def fit(self):
        history = [self.run_epoch() for _ in range(self.epochs)]
        print("epoch losses", " ".join(f"{v:.3f}" for v in history[:2] + history[-1:]))


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiles", type=int, default=1536 if gpu else 24)
    parser.add_argument("--tile", type=int, default=224 if gpu else 32)
    parser.add_argument("--slide-side", type=int, default=4096 if gpu else 256)
    parser.add_argument("--batch", type=int, default=128 if gpu else 8)
    parser.add_argument("--width", type=int, default=96 if gpu else 8)
    parser.add_argument("--depth", type=int, default=3 if gpu else 1)
    parser.add_argument("--epochs", type=int, default=10 if gpu else 3)
    parser.add_argument("--workers", type=int, default=8 if gpu else 2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    Trainer(args, torch.device("cuda" if gpu else "cpu")).fit()


if __name__ == "__main__":
    main()
