import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.backends.cudnn.benchmark = True


def get_args():
    p = argparse.ArgumentParser("satellite tiles")
    p.add_argument("--batch-size", type=int, default=192)
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--workers", type=int, default=8)
    p.add_argument("--epochs", type=int, default=4)
    return p.parse_args()


class Tiles(Dataset):
    """A memory-resident raster from which whole batches of tiles are cut."""

    def __init__(self, batches, batch_size, size):
        self.batches, self.batch_size, self.size = batches, batch_size, size
        self.raster = torch.randint(0, 256, (batch_size + 64, 3, size, size), dtype=torch.uint8)
        self.kinds = torch.randint(0, 21, (batch_size + 64,))

    def __len__(self):
        return self.batches

    def __getitem__(self, i):
        s = i % 64
        return self.raster[s:s + self.batch_size], self.kinds[s:s + self.batch_size]


def unit(i, o, stride):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def main():
    args = get_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Tiles(100, args.batch_size, args.size), batch_size=None, num_workers=args.workers,  # flaw: pageable-host-copy
                        persistent_workers=True, prefetch_factor=4)
    net = nn.Sequential(
        unit(3, 64, 4), unit(64, 128, 2), unit(128, 256, 1), unit(256, 256, 2), unit(256, 512, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 21),
    ).to(device, memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
    for epoch in range(args.epochs):
        for tiles, kinds in loader:
            tiles = tiles.to(device, non_blocking=True)  # flaw: pageable-host-copy
            kinds = kinds.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                images = tiles.to(torch.bfloat16, memory_format=torch.channels_last).div_(255)
                loss = criterion(net(images), kinds)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
