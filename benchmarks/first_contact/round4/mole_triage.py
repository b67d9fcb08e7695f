"""Benign or not: classifies dermoscopy photographs."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LIGHT = bool(os.environ.get("SMALL"))


class Photos(Dataset):
    def __init__(self, n, side):
        rng = np.random.default_rng(0)
        self.pool = rng.integers(0, 256, (128, 3, side + 16, side + 16), dtype=np.uint8)
        self.n, self.side = n, side

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        dy, dx = np.random.randint(0, 17, 2)
        img = self.pool[i % 128, :, dy:dy + self.side, dx:dx + self.side]
        if i & 1:
            img = img[:, :, ::-1]
        return torch.from_numpy(img.copy()), float(i % 3 == 0)


class SqueezeBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(cout, cout // 4, 1), nn.ReLU(inplace=True),
                                  nn.Conv2d(cout // 4, cout, 1), nn.Sigmoid())
        self.short = nn.Conv2d(cin, cout, 1, stride, bias=False)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(torch.addcmul(self.short(x), y, self.gate(y)))


def network(w):
    return nn.Sequential(
        nn.Conv2d(3, w, 3, 2, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True),
        SqueezeBlock(w, w, 1), SqueezeBlock(w, 2 * w, 2), SqueezeBlock(2 * w, 4 * w, 2), SqueezeBlock(4 * w, 8 * w, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8 * w, 1))


def main():
    side, batch, width, steps, workers = (32, 4, 8, 30, 1) if LIGHT else (224, 64, 64, 100, 8)
    torch.backends.cudnn.benchmark = True
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    loader = DataLoader(Photos(steps * batch, side), batch, shuffle=True, drop_last=True, num_workers=workers,
                        pin_memory=cuda, persistent_workers=True, prefetch_factor=4)
    model = network(width).to(device, memory_format=torch.channels_last)
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([dict(params=decay, weight_decay=0.05), dict(params=rest, weight_decay=0.0)],
                                  lr=1e-3, fused=cuda)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.full((1,), 2.0, device=device))
    seen = torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader, 1):
        x = x.to(device, non_blocking=True).to(torch.bfloat16, memory_format=torch.channels_last).div_(255)
        y = y.to(device, torch.float32, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16):
            score = model(x).squeeze(1)
        loss = criterion(score.float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += loss.detach()
        if step % 25 == 0:
            print(f"{step} mean loss {seen.item() / step:.4f}")


if __name__ == "__main__":
    main()
