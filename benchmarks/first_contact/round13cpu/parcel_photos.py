"""Damage classifier for parcel photos, stored as JPEG bytes and augmented with PIL."""
import argparse
import io

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--photos", type=int, default=1920)
    p.add_argument("--side", type=int, default=320)
    p.add_argument("--crop", type=int, default=96)
    p.add_argument("--batch", type=int, default=24)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--workers", type=int, default=1)  # flaw: too-few-loader-workers
    return p.parse_args([])


def shoot(side, count, seed=0):
    """A few base photos, with and without a dent, encoded once."""
    rng = np.random.default_rng(seed)
    photos = []
    for i in range(count):
        small = Image.fromarray(rng.integers(60, 200, (20, 20, 3), dtype=np.uint8))
        px = np.array(small.resize((side, side), Image.Resampling.BICUBIC))
        if i % 2:
            y, x = rng.integers(side // 4, side // 2, 2)
            px[y:y + side // 4, x:x + side // 4] //= 3
        buf = io.BytesIO()
        Image.fromarray(px).save(buf, "JPEG", quality=90)
        photos.append((buf.getvalue(), i % 2))
    return photos


class Parcels(Dataset):
    def __init__(self, photos, length, crop):
        self.photos, self.length, self.crop = photos, length, crop

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        data, label = self.photos[i % len(self.photos)]
        image = Image.open(io.BytesIO(data))
        turn = (i * 37) % 21 - 10
        image = image.rotate(turn, Image.Resampling.BILINEAR)
        image = image.resize((self.crop, self.crop), Image.Resampling.BILINEAR)
        return np.asarray(image), label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 12, 5, stride=4, padding=2), nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(216, 2),
        )

    def forward(self, x):
        return self.body(x)


def main():
    args = parse()
    torch.manual_seed(2)
    torch.set_num_threads(1)
    data = Parcels(shoot(args.side, 64), args.photos, args.crop)
    loader = DataLoader(data, args.batch, shuffle=True, num_workers=args.workers,
                        persistent_workers=True, prefetch_factor=4)
    model = Net().to(memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        total = torch.zeros(())
        for image, label in loader:
            x = image.permute(0, 3, 1, 2).float().div_(255.0)
            loss = loss_fn(model(x), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f"epoch {epoch} loss {float(total) / len(loader):.4f}")


if __name__ == "__main__":
    main()
