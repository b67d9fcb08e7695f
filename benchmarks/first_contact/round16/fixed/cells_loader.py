"""Phenotype classifier for fluorescence microscopy crops."""
import os
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"


@dataclass
class LoaderOptions:
    batch_size: int = 8 if TINY else 32
    shuffle: bool = True
    drop_last: bool = True
    num_workers: int = 2 if TINY else 14
    persistent_workers: bool = True
    pin_memory: bool = torch.cuda.is_available()


@dataclass
class Experiment:
    cells: int = 32 if TINY else 2048
    side: int = 32 if TINY else 160
    epochs: int = 1 if TINY else 3
    classes: int = 8
    loader: LoaderOptions = field(default_factory=LoaderOptions)


class Cells(Dataset):
    def __init__(self, count, side, classes):
        rng = np.random.default_rng(0)
        self.plates = rng.integers(0, 4096, (64, 4, side + 32, side + 32), dtype=np.uint16)
        self.labels = rng.integers(0, classes, count)
        self.side = side

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        top, left = rng.integers(0, 32, 2)
        crop = self.plates[i % 64, :, top:top + self.side, left:left + self.side]
        crop = np.rot90(crop, rng.integers(4), (1, 2)).astype(np.float32)
        low = crop.min((1, 2), keepdims=True)
        high = crop.max((1, 2), keepdims=True)
        crop = (crop - low) / (high - low + 1)
        crop = crop ** rng.uniform(0.7, 1.4)
        crop += rng.standard_normal(crop.shape, dtype=np.float32) * 0.03
        crop *= rng.uniform(0.8, 1.2, (4, 1, 1)).astype(np.float32)
        if rng.random() < 0.5:
            crop = crop[:, :, ::-1]
        return torch.from_numpy(np.ascontiguousarray(crop)), int(self.labels[i])


def conv(inside, outside, stride):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside),
                         nn.ReLU(inplace=True))


def network(classes):
    widths = [4, 64, 128, 256, 512]
    stages = []
    for a, b in zip(widths, widths[1:]):
        stages += [conv(a, b, 2), conv(b, b, 1), conv(b, b, 1)]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def run(exp):
    torch.manual_seed(4)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Cells(exp.cells, exp.side, exp.classes), **asdict(exp.loader))
    net = network(exp.classes).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, fused=True)
    for epoch in range(exp.epochs):
        total = torch.zeros((), device=device)
        for crops, labels in loader:
            crops = crops.to(device, non_blocking=True, memory_format=torch.channels_last)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(net(crops), labels)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.3f}")


if __name__ == "__main__":
    run(Experiment())
