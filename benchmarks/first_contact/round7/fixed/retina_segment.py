# Vessel segmentation in fundus photographs, small residual U-Net
import argparse

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

cuda = torch.cuda.is_available()

parser = argparse.ArgumentParser()
parser.add_argument("--images", type=int, default=160 if cuda else 6)
parser.add_argument("--size", type=int, default=384 if cuda else 32)
parser.add_argument("--batch-size", type=int, default=16 if cuda else 2)
parser.add_argument("--epochs", type=int, default=8 if cuda else 1)
parser.add_argument("--width", type=int, default=64 if cuda else 8)
parser.add_argument("--lr", type=float, default=1e-3)


class Fundus(Dataset):
    def __init__(self, n, size):
        rng = np.random.default_rng(0)
        self.photos = rng.integers(0, 255, (n, size, size, 3), dtype=np.uint8)
        self.vessels = (rng.random((n, size, size)) > 0.88).astype(np.uint8)

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, i):
        photo = self.photos[i].astype(np.float32) / 255
        mask = self.vessels[i]
        if np.random.rand() < 0.5:
            photo, mask = photo[:, ::-1], mask[:, ::-1]
        turns = np.random.randint(4)
        photo, mask = np.rot90(photo, turns), np.rot90(mask, turns)
        photo = np.clip(photo * np.random.uniform(0.8, 1.2) + np.random.uniform(-0.1, 0.1), 0, 1)
        mean, std = photo.mean((0, 1)), photo.std((0, 1)) + 1e-5
        photo = ((photo - mean) / std).astype(np.float32).transpose(2, 0, 1)
        return torch.from_numpy(photo.copy()), torch.from_numpy(mask.copy()).float()[None]


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
    def __init__(self, w):
        super().__init__()
        self.enc1, self.enc2, self.enc3 = double_conv(3, w), double_conv(w, 2 * w), double_conv(2 * w, 4 * w)
        self.up2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2)
        self.dec2 = double_conv(4 * w, 2 * w)
        self.up1 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.dec1 = double_conv(2 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool2d(a, 2))
        c = self.enc3(F.max_pool2d(b, 2))
        b = self.dec2(torch.cat([self.up2(c), b], 1))
        a = self.dec1(torch.cat([self.up1(b), a], 1))
        return self.out(a)


def main(args):
    torch.manual_seed(0)
    np.random.seed(0)
    torch.backends.cudnn.benchmark = True
    device = "cuda" if cuda else "cpu"
    data = Fundus(args.images, args.size)
    workers = 12 if cuda else 0
    loader = DataLoader(
        data,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        pin_memory=cuda,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    model = UNet(args.width).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
    for epoch in range(args.epochs):
        total = torch.zeros((), device=device)
        for photo, mask in loader:
            photo = photo.to(device, non_blocking=True, memory_format=torch.channels_last)
            mask = mask.to(device, non_blocking=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                logits = model(photo)
            loss = F.binary_cross_entropy_with_logits(logits.float(), mask)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {total.item() / len(loader):.4f}")


main(parser.parse_args())
