"""Segmentation of made-up X-rays with an encoder and a decoder."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--bs", default=32, type=int)
parser.add_argument("-j", "--workers", default=1, type=int)  # flaw: too-few-loader-workers
parser.add_argument("--lr", default=0.01, type=float)


class Rays(Dataset):
    def __len__(self):
        return 32 * 320

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        x = rng.random((192, 192), dtype=np.float32)
        x = np.sqrt(x) * 0.5 + x**1.5
        x = x + np.roll(x, 3, 0) * 0.2 + np.roll(x, 5, 1) * 0.1
        x = np.log1p(x - x.min())
        mask = np.tanh(x) > 0.5
        return torch.from_numpy(x)[None], torch.from_numpy(mask.astype(np.float32))[None]


def cbr(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))


class Seg(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = cbr(1, 64), cbr(64, 128)
        self.mid = cbr(128, 128)
        self.u1 = nn.ConvTranspose2d(128, 64, 2, 2)
        self.out = nn.Sequential(cbr(128, 64), nn.Conv2d(64, 1, 1))
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.d1(x)
        b = self.mid(self.d2(self.pool(a)))
        return self.out(torch.cat([a, self.u1(b)], 1))


def main(args):
    torch.backends.cudnn.benchmark = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Seg().to(device, memory_format=torch.channels_last)
    loader = DataLoader(Rays(), args.bs, num_workers=args.workers, persistent_workers=args.workers > 0, pin_memory=True)  # flaw: too-few-loader-workers
    opt = torch.optim.SGD(model.parameters(), args.lr, 0.9, fused=True)
    for img, mask in loader:
        img = img.to(device, non_blocking=True, memory_format=torch.channels_last)
        mask = mask.to(device, non_blocking=True)
        with torch.autocast(device, torch.bfloat16):
            out = model(img)
        loss = nn.functional.binary_cross_entropy_with_logits(out.float(), mask)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main(parser.parse_args())
