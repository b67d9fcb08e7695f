import os
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("SMALL") == "1"
P = dict(n=64, bs=16, side=32, ch=8, epochs=8) if TINY else dict(n=1536, bs=128, side=128, ch=128, epochs=12)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class WaferMaps(Dataset):
    def __init__(self, n, side):
        self.maps = np.random.default_rng(0).integers(0, 255, (n, side, side, 3), dtype=np.uint8)
        self.kind = np.random.default_rng(1).integers(0, 8, n)

    def __len__(self):
        return len(self.maps)

    def __getitem__(self, i):
        m = self.maps[i]
        if i % 2:
            m = m[:, ::-1]
        m = np.roll(m, i % 7, axis=0)
        return torch.from_numpy(np.ascontiguousarray(m)), int(self.kind[i])


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(True),
                               nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c))
        self.act = nn.ReLU(True)

    def forward(self, x):
        return self.act(self.f(x) + x)


class WaferNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, c, 4, 4, bias=False), nn.BatchNorm2d(c), nn.ReLU(True))
        self.trunk = nn.Sequential(*(Block(c) for _ in range(8)))
        self.fc = nn.Linear(c, 8)

    def forward(self, x):
        return self.fc(self.trunk(self.stem(x)).flatten(2).mean(-1))


def loader_for(split):
    return DataLoader(
        split,
        batch_size=P["bs"],
        shuffle=True,
        drop_last=True,
        num_workers=2 if TINY else 8,
        pin_memory=DEVICE == "cuda",
        prefetch_factor=3,
        persistent_workers=True,
    )


class Run:
    def __init__(self):
        torch.backends.cudnn.benchmark = True
        self.net = WaferNet(P["ch"]).to(DEVICE, memory_format=torch.channels_last)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3, fused=True)
        self.crit = nn.CrossEntropyLoss()
        self.loader = loader_for(WaferMaps(P["n"], P["side"]))

    def epoch(self, e):
        acc = torch.zeros((), device=DEVICE)
        for img, kind in self.loader:
            img = img.to(DEVICE, non_blocking=True).permute(0, 3, 1, 2)
            kind = kind.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                loss = self.crit(self.net(img.to(torch.bfloat16).div_(127.5)), kind)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            acc += loss.detach()
        print(f"epoch {e}: {acc.item() / len(self.loader):.3f}")


if __name__ == "__main__":
    run = Run()
    for e in range(P["epochs"]):
        run.epoch(e)
