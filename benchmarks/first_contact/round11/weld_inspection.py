"""Find weld defects on X-ray strips: crops by worker processes, a compiled convolutional network."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class WeldCrops(Dataset):
    """Crops of a few long strips; the label is the most severe defect in the crop (synthetic)."""

    def __init__(self, crops, side, strip_length, seed=0):
        rng = np.random.default_rng(seed)
        self.strips = rng.integers(0, 256, (4, side, strip_length), dtype=np.uint8)
        self.left = rng.integers(0, strip_length - side, crops)
        self.strip = rng.integers(0, 4, crops)
        self.side = side

    def __len__(self):
        return len(self.left)

    def __getitem__(self, i):
        strip, left = self.strip[i], self.left[i]
        crop = self.strips[strip, :, left:left + self.side]
        return torch.from_numpy(crop.copy()), int(left // 8 + strip) % 8


class ConvNorm(nn.Sequential):
    def __init__(self, n_in, n_out, kernel=3, stride=1):
        super().__init__(
            nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
        )


class WeldNet(nn.Module):
    """Folds 4 x 4 pixels into channels, then plain convolutions at three scales."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            ConvNorm(16, width), ConvNorm(width, width),
            ConvNorm(width, 2 * width, stride=2), ConvNorm(2 * width, 2 * width),
            ConvNorm(2 * width, 4 * width, stride=2), ConvNorm(4 * width, 4 * width),
        )
        self.head = nn.Linear(4 * width, 8)

    def forward(self, crops):
        x = F.pixel_unshuffle(crops.unsqueeze(1), 4).to(memory_format=torch.channels_last)
        return self.head(self.body(x).mean((2, 3)))


def arguments(gpu):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=256 if gpu else 32)
    parser.add_argument("--strip", type=int, default=100_000 if gpu else 1000)
    parser.add_argument("--batch", type=int, default=192 if gpu else 4)
    parser.add_argument("--steps", type=int, default=150 if gpu else 4)
    parser.add_argument("--width", type=int, default=128 if gpu else 8)
    parser.add_argument("--workers", type=int, default=8 if gpu else 1)
    parser.add_argument("--lr", type=float, default=0.02)
    return parser.parse_args()


def main():
    gpu = torch.cuda.is_available()
    args = arguments(gpu)
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    data = WeldCrops(args.batch * args.steps, args.side, args.strip)
    loader = DataLoader(data, args.batch, shuffle=True, num_workers=args.workers, pin_memory=gpu,
                        prefetch_factor=6, persistent_workers=True)
    model = WeldNet(args.width).to(device, memory_format=torch.channels_last)
    network = torch.compile(model) if gpu else model
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=args.steps)
    total = torch.zeros((), device=device)
    for crops, defects in loader:
        crops = crops.to(device, non_blocking=True)
        defects = defects.to(device, non_blocking=True)
        crops = crops.to(torch.bfloat16).div_(127.5).sub_(1)
        with torch.autocast(device.type, torch.bfloat16):
            loss = F.cross_entropy(network(crops), defects)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.detach()
    print(f"{args.steps} steps, mean loss {total.item() / args.steps:.4f}")


if __name__ == "__main__":
    main()
