"""A residual net on images: channels_last, bf16 autocast, compiled, eight persistent workers."""

from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
BATCH, SIDE, CLASSES = 512, 112, 100


class Crops(Dataset):
    """Images kept as bytes; a sample is a random crop, normalised on the device."""

    def __init__(self, count=2048):
        self.images = np.random.randint(0, 256, (count, 3, SIDE + 16, SIDE + 16), dtype=np.uint8)

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        top, left = np.random.randint(0, 16, 2)
        image = self.images[index % len(self.images), :, top : top + SIDE, left : left + SIDE]
        return torch.from_numpy(np.ascontiguousarray(image)), index % CLASSES


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.skip = nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.skip(x))


def net():
    widths = [64, 128, 256, 512]
    blocks = [Block(a, b, 2) for a, b in pairwise(widths)]
    stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
    pool = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES)]
    return nn.Sequential(stem, nn.BatchNorm2d(64), nn.ReLU(inplace=True), *blocks, *pool)


def main():
    loader = DataLoader(
        Crops(), BATCH, shuffle=True, num_workers=8, pin_memory=True, persistent_workers=True, drop_last=True
    )
    model = net().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-5, fused=True)
    compiled = torch.compile(model)
    running = torch.zeros((), device="cuda")
    for step, (images, labels) in enumerate(loader):
        images = images.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        labels = labels.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(compiled(images.bfloat16().mul_(1 / 255)), labels, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 100 == 99:
            print(f"step {step}: loss {running.item() / 100:.3f}")
            running.zero_()


if __name__ == "__main__":
    main()
