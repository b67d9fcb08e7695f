import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    """Whole batches cut from one block of photos; flipping happens on the device."""

    def __init__(self, batches, batch_size, size):
        self.n, self.b = batches, batch_size
        self.photos = torch.randint(0, 256, (batch_size + 32, size, size, 3), dtype=torch.uint8)
        self.kinds = torch.randint(0, 100, (batch_size + 32,))

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        s = i % 32
        return self.photos[s:s + self.b], self.kinds[s:s + self.b]


class Bottleneck(nn.Module):
    def __init__(self, c, mid):
        super().__init__()
        self.a, self.na = nn.Conv2d(c, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.b, self.nb = nn.Conv2d(mid, mid, 3, padding=1, bias=False), nn.BatchNorm2d(mid)
        self.c, self.nc = nn.Conv2d(mid, c, 1, bias=False), nn.BatchNorm2d(c)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.na(self.a(x)))
        y = self.relu(self.nb(self.b(y)))
        return self.relu(x + self.nc(self.c(y)))


def network():
    def down(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 2, 2, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
    return nn.Sequential(
        nn.Conv2d(3, 64, 4, 4, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        Bottleneck(64, 64), Bottleneck(64, 64), down(64, 256), Bottleneck(256, 128), Bottleneck(256, 128),
        down(256, 512), Bottleneck(512, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 100))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=256)
    ap.add_argument("--size", type=int, default=192)
    ap.add_argument("--epochs", type=int, default=4)
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(Photos(100, args.batch_size, args.size), batch_size=None, num_workers=6, persistent_workers=True,
                        prefetch_factor=4, pin_memory=device.type == "cuda")
    model = network().to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    for epoch in range(args.epochs):
        for photos, kinds in loader:
            photos = photos.to(device, non_blocking=True).permute(0, 3, 1, 2)
            kinds = kinds.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                x = photos.to(torch.bfloat16) / 255
                loss = nn.functional.cross_entropy(model(x), kinds)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
