import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def parse_args():
    small = not torch.cuda.is_available()
    parser = argparse.ArgumentParser(description="Land cover from six-band satellite scenes")
    parser.add_argument("--scenes", type=int, default=1 if small else 4)
    parser.add_argument("--scene-size", type=int, default=256 if small else 2048)
    parser.add_argument("--tile", type=int, default=32 if small else 256)
    parser.add_argument("--tiles-per-epoch", type=int, default=8 if small else 960)
    parser.add_argument("--batch-size", type=int, default=4 if small else 32)
    parser.add_argument("--base", type=int, default=8 if small else 48)
    parser.add_argument("--epochs", type=int, default=1 if small else 2)
    parser.add_argument("--classes", type=int, default=9)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class SceneTiles(Dataset):
    """Random tiles of scenes that are held in memory as 16-bit counts."""

    def __init__(self, args):
        rng = np.random.default_rng(args.seed)
        size = args.scene_size
        self.scenes = rng.integers(0, 10000, (args.scenes, 6, size, size), dtype=np.uint16)
        self.cover = rng.integers(0, args.classes, (args.scenes, size, size), dtype=np.uint8)
        self.tile, self.length = args.tile, args.tiles_per_epoch

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        scene = rng.integers(len(self.scenes))
        y, x = rng.integers(0, self.scenes.shape[-1] - self.tile, 2)
        window = np.s_[y : y + self.tile, x : x + self.tile]
        bands = self.scenes[scene][:, window[0], window[1]].astype(np.float32) * 1e-4
        cover = self.cover[scene][window]
        bands = np.clip(bands * rng.uniform(0.9, 1.1), 0.0, 1.0) ** np.float32(rng.uniform(0.8, 1.2))
        red, infrared = bands[2], bands[3]
        vegetation = (infrared - red) / (infrared + red + 1e-4)
        water = (bands[1] - infrared) / (bands[1] + infrared + 1e-4)
        sample = np.concatenate([bands, vegetation[None], water[None]])
        turns = rng.integers(4)
        sample = np.rot90(sample, turns, (1, 2)).copy()
        cover = np.rot90(cover, turns).astype(np.int64)
        return torch.from_numpy(sample), torch.from_numpy(cover)


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, bands, classes, base, depth=4):
        super().__init__()
        widths = [base * 2**i for i in range(depth)]
        self.down = nn.ModuleList(double_conv(a, b) for a, b in zip([bands, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.merge = nn.ModuleList(double_conv(2 * w, w) for w in reversed(widths[:-1]))
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([up(x), skips.pop()], dim=1))
        return self.head(x)


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    tiles = SceneTiles(args)
    loader = DataLoader(tiles, batch_size=args.batch_size, shuffle=True, pin_memory=True, drop_last=True)  # flaw: loader-without-workers
    net = UNet(8, args.classes, args.base).to(device).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, fused=device.type == "cuda")
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        running = torch.zeros((), device=device)
        for bands, cover in loader:
            bands = bands.to(device, non_blocking=True, memory_format=torch.channels_last)
            cover = cover.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = criterion(net(bands), cover)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print(f"epoch {epoch}  loss {running.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
