"""Scene classification of satellite tiles with a loader that augments on the worker side."""
import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    tiles: int = 2048
    side: int = 128
    batch: int = 128
    width: int = 96
    epochs: int = 5
    workers: int = 10


class Tiles(Dataset):
    def __init__(self, s: Settings):
        rng = np.random.default_rng(0)
        self.pixels = torch.from_numpy(rng.integers(0, 256, (s.tiles, 3, s.side, s.side), dtype=np.uint8))
        self.scene = torch.from_numpy(rng.integers(0, 16, s.tiles))

    def __len__(self):
        return len(self.scene)

    def __getitems__(self, indices):
        pick = torch.as_tensor(indices)
        img = self.pixels[pick].contiguous(memory_format=torch.channels_last)
        return (img.flip(3) if indices[0] % 2 else img), self.scene[pick]


def bottleneck(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


class SceneNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.layers = nn.Sequential(bottleneck(3, w, 2), bottleneck(w, 2 * w, 2), bottleneck(2 * w, 4 * w, 2))
        self.fc = nn.Linear(4 * w, 16)

    def forward(self, x):
        return self.fc(self.layers(x).mean((2, 3)))


def main(s: Settings):
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Tiles(s), batch_size=s.batch, shuffle=True, drop_last=True, num_workers=s.workers,
                        collate_fn=tuple, pin_memory=device.type == "cuda", persistent_workers=True)
    net = SceneNet(s.width).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, fused=True)
    for epoch in range(s.epochs):
        total = torch.zeros((), device=device)
        for img, scene in loader:
            img = img.to(device, non_blocking=True)
            scene = scene.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = F.cross_entropy(net(img.to(torch.bfloat16).mul_(1 / 255)), scene)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: {total.item() / len(loader):.3f}")


if __name__ == "__main__":
    main(Settings(64, 32, 8, 8, 4, 2) if os.environ.get("SMALL") == "1" else Settings())
