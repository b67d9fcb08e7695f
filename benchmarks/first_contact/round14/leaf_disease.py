"""Diseases of leaves from photographs; the workers crop and flip bytes, the device scales them."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
SIDE, BATCH, BATCHES, WIDTH, WORKERS = (32, 4, 4, 8, 2) if TINY else (160, 192, 700, 96, 12)
torch.backends.cudnn.benchmark = True


class Leaves(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.photos = rng.integers(0, 256, (48, SIDE + 24, SIDE + 24, 3), dtype=np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        top, left = rng.integers(0, 24, 2)
        crop = self.photos[i % 48, top:top + SIDE, left:left + SIDE]
        if i % 2:
            crop = crop[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(crop)), i % 10


def conv(cin, cout, stride=1):
    return [nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        w = WIDTH
        self.features = nn.Sequential(
            *conv(3, w, 2), *conv(w, w), *conv(w, 2 * w, 2), *conv(2 * w, 2 * w), *conv(2 * w, 4 * w, 2), *conv(4 * w, 4 * w))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, 10))

    def forward(self, photos):
        x = photos.permute(0, 3, 1, 2).to(torch.bfloat16).div_(127.5).sub_(1)
        return self.head(self.features(x))


def main():
    torch.manual_seed(21)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Net().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
    loader = DataLoader(Leaves(BATCH * BATCHES), BATCH, num_workers=WORKERS, pin_memory=device == "cuda", prefetch_factor=4)
    for step, (photos, kinds) in enumerate(loader):
        photos, kinds = photos.to(device, non_blocking=True), kinds.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(photos), kinds)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, f"{loss.item():.3f}", flush=True)
    print("end", f"{loss.item():.3f}")


if __name__ == "__main__":
    main()
