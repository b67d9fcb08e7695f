"""Liver segmentation on a small CT set: many short epochs with light augmentation."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slices(Dataset):
    def __init__(self, n, size):
        rng = np.random.default_rng(1)
        self.ct = rng.standard_normal((n, size, size), dtype=np.float32)
        blob = np.hypot(*np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size))) < 0.5
        self.mask = np.stack([np.roll(blob, 3 * i, axis=i % 2) for i in range(n)]).astype(np.uint8)
        self.ct += self.mask

    def __len__(self):
        return len(self.ct)

    def __getitem__(self, i):
        image, mask = self.ct[i], self.mask[i]
        if i % 2:
            image, mask = image[:, ::-1], mask[:, ::-1]
        window = np.clip(image, -2.0, 2.5)
        return torch.from_numpy(window.copy())[None], torch.from_numpy(mask.copy())


def unit(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        w = width
        self.d1, self.d2, self.d3 = unit(1, w), unit(w, 2 * w), unit(2 * w, 4 * w)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.u2, self.u1 = unit(4 * w, 2 * w), unit(2 * w, w)
        self.out = nn.Conv2d(w, 2, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        b = self.u2(torch.cat([self.up2(c), b], 1))
        a = self.u1(torch.cat([self.up1(b), a], 1))
        return self.out(a)


def make_loader(dataset, args, generator):
    return DataLoader(  # flaw: loader-workers-restart
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        pin_memory=args.device == "cuda",
        drop_last=True,
        generator=generator,
    )


def train_epoch(model, loader, opt, device):
    total = torch.zeros((), device=device)
    for image, mask in loader:
        image = image.to(device, non_blocking=True, memory_format=torch.channels_last)
        mask = mask.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(image), mask.long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
    return total / len(loader)


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--device", default="cuda" if cuda else "cpu")
    ap.add_argument("--slices", type=int, default=240 if cuda else 8)
    ap.add_argument("--size", type=int, default=256 if cuda else 32)
    ap.add_argument("--batch-size", type=int, default=20 if cuda else 4)
    ap.add_argument("--width", type=int, default=48 if cuda else 4)
    ap.add_argument("--epochs", type=int, default=18 if cuda else 2)
    ap.add_argument("--workers", type=int, default=8 if cuda else 1)
    args = ap.parse_args()

    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    model = UNet(args.width).to(args.device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loader = make_loader(Slices(args.slices, args.size), args, torch.Generator().manual_seed(3))
    losses = [train_epoch(model, loader, opt, args.device) for _ in range(args.epochs)]
    print("first epochs:", " ".join(f"{v:.4f}" for v in torch.stack(losses)[:2].tolist()))
    print(f"epoch {args.epochs}: {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
