"""Semantic segmentation on VOC-style labels, stored as colour images."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
CROP = 256 if CUDA else 32
NUM_CLASSES = 21


def voc_colormap(n=NUM_CLASSES):
    colors = np.zeros((n, 3), dtype=np.uint8)
    for i in range(n):
        c = i
        for bit in range(7, -1, -1):
            for channel in range(3):
                colors[i, channel] |= ((c >> channel) & 1) << bit
            c >>= 3
    return colors


COLORMAP = voc_colormap()


class VOCLike(Dataset):
    def __init__(self, n, size):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (24, size, size, 3), dtype=np.uint8)
        coarse = rng.integers(0, NUM_CLASSES, (24, size // 16, size // 16))
        self.labels = COLORMAP[coarse.repeat(16, axis=1).repeat(16, axis=2)]
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        image, label = self.images[i % 24], self.labels[i % 24]
        top, left = rng.integers(0, image.shape[0] - CROP + 1, 2)
        image = image[top : top + CROP, left : left + CROP]
        label = label[top : top + CROP, left : left + CROP]
        if rng.random() < 0.5:
            image, label = image[:, ::-1], label[:, ::-1]
        mask = np.full(label.shape[:2], 255, dtype=np.uint8)
        for index, color in enumerate(COLORMAP):  # flaw: slow-sample-line
            mask[(label == color).all(axis=-1)] = index  # flaw: slow-sample-line
        image = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))
        return image, torch.from_numpy(mask)


def unit(cin, cout, stride=1, dilation=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, dilation, dilation, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class DilatedNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.encoder = nn.Sequential(
            unit(3, w, 2), unit(w, w), unit(w, 2 * w, 2), unit(2 * w, 2 * w), unit(2 * w, 4 * w, 2),
            unit(4 * w, 4 * w), unit(4 * w, 4 * w, dilation=2), unit(4 * w, 4 * w, dilation=4),
        )  # fmt: skip
        self.classifier = nn.Conv2d(4 * w, NUM_CLASSES, 1)

    def forward(self, x):
        y = self.classifier(self.encoder(x))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if CUDA else "cpu")
    batch = 32 if CUDA else 2
    dataset = VOCLike(batch * (100 if CUDA else 3), 384 if CUDA else 48)
    loader = DataLoader(dataset, batch, shuffle=True, num_workers=12 if CUDA else 0, pin_memory=CUDA, drop_last=True)
    mean = torch.tensor([123.7, 116.3, 103.5], device=device).view(1, 3, 1, 1)
    model = DilatedNet(64 if CUDA else 4).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    for step, (image, mask) in enumerate(loader):
        image = image.to(device, non_blocking=True, memory_format=torch.channels_last)
        mask = mask.to(device, non_blocking=True).long()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model((image - mean) / 58.0)
        loss = F.cross_entropy(logits, mask, ignore_index=255)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
