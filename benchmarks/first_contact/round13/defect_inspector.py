"""Defect classes from camera crops: loader workers, channels last, bfloat16, compiled blocks."""
import functools
import os

import numpy as np
import torch
from torch import nn
from torch.utils import data as tud

TINY = bool(os.environ.get("TINY"))
P = dict(crops=128, side=16, width=16, blocks=2, batch=16, epochs=2, workers=0) if TINY else \
    dict(crops=32768, side=128, width=256, blocks=6, batch=512, epochs=4, workers=4)
CUDA = torch.cuda.is_available()
DEV = torch.device("cuda" if CUDA else "cpu")


class Crops(tud.Dataset):
    def __init__(self, n, side):
        rng = np.random.default_rng(0)
        self.n = n
        self.plates = rng.integers(0, 200, (256, side, side, 4), dtype=np.uint8)
        self.kind = rng.integers(0, 8, n)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        crop = self.plates[i % 256].copy()
        k = int(self.kind[i])
        crop[k::8, :, 0] = 255
        if i & 1:
            crop = crop[:, ::-1].copy()
        return torch.from_numpy(crop), k


class Bottle(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
        self.c2, self.b2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

    def forward(self, x):
        return torch.relu(x + self.b2(self.c2(torch.relu(self.b1(self.c1(x))))))


class Inspector(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.stem = nn.Conv2d(64, width, 1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList(Bottle(width) for _ in range(blocks))
        self.head = nn.Linear(width, 8)

    def forward(self, crops):
        b, s = crops.shape[:2]
        # 4 x 4 patches to channels: (b, s/4, s/4, 64), features last in memory
        x = crops.view(b, s // 4, 4, s // 4, 4, 4).transpose(2, 3).reshape(b, s // 4, s // 4, 64).permute(0, 3, 1, 2)
        x = self.norm(self.stem(x.to(torch.bfloat16 if CUDA else torch.float32) / 128 - 1))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def fit(p):
    torch.manual_seed(7)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    net = Inspector(p["width"], p["blocks"]).to(DEV, memory_format=torch.channels_last)
    if not TINY:
        for block in net.blocks:
            block.compile()
    loader = tud.DataLoader(Crops(p["crops"], p["side"]), p["batch"], shuffle=True, drop_last=True,
                            num_workers=p["workers"], pin_memory=CUDA, persistent_workers=p["workers"] > 0)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, fused=CUDA)
    cast = functools.partial(torch.autocast, DEV.type, torch.bfloat16, enabled=CUDA)
    for epoch in range(p["epochs"]):
        mean = torch.zeros((), device=DEV)
        for crops, kind in loader:
            crops, kind = crops.to(DEV, non_blocking=True), kind.to(DEV, non_blocking=True)
            with cast():
                loss = nn.functional.cross_entropy(net(crops), kind)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            mean += loss.detach() / len(loader)
        print("epoch %d loss %.4f" % (epoch, mean.item()))


if __name__ == "__main__":
    fit(P)
