"""Classifies flowers (made up) with random augmentation."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Flowers(Dataset):
    def __init__(self, n=25_600, size=112):
        rng = np.random.default_rng(0)
        self.base = rng.random((64, 3, size, size), dtype=np.float32)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        img = self.base[i % 64]
        if np.random.rand() < 0.5:
            img = img[:, :, ::-1]
        img = img ** np.float32(np.random.uniform(0.8, 1.2))
        blurred = (img + np.roll(img, 1, 1) + np.roll(img, 1, 2)) / 3
        img = np.clip(img * 1.2 - blurred * 0.2, 0, 1)
        grain = np.random.rand(*img.shape).astype(np.float32)
        img = (img + 0.05 * grain - 0.45) / 0.225
        return torch.from_numpy(np.ascontiguousarray(img)), i % 102


def unit(i, o, s):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def main():
    torch.backends.cudnn.benchmark = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(
        unit(3, 64, 2), unit(64, 128, 1), unit(128, 256, 2), unit(256, 256, 1), unit(256, 512, 2), unit(512, 512, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 102),
    ).to(device, memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, fused=True)
    train = DataLoader(Flowers(), batch_size=64, shuffle=True, pin_memory=True, drop_last=True)  # flaw: loader-without-workers
    for x, y in train:
        x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
        y = y.to(device, non_blocking=True)
        sgd.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()


if __name__ == "__main__":
    main()
