"""Moth classification from a loader of 8-bit images; scaling happens on the device."""
import os
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class Moths(Dataset):
    def __init__(self, count, side):
        self.bank = torch.randint(0, 256, (128, side, side, 3), dtype=torch.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.bank[i % 128], i % 97


class Block(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.a, self.na = nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o)
        self.b, self.nb = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.skip = nn.Conv2d(i, o, 1, s, bias=False)

    def forward(self, x):
        y = self.nb(self.b(F.relu(self.na(self.a(x)), True)))
        return F.relu(y + self.skip(x), True)


def main():
    side, batch, steps, c = (16, 2, 30, 4) if SMALL else (192, 128, 80, 64)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(Moths(batch * steps, side), batch, shuffle=True, num_workers=2 if SMALL else 6, pin_memory=True, persistent_workers=True)
    net = nn.Sequential(nn.Conv2d(3, c, 4, 4), Block(c, c, 1), Block(c, 2 * c, 2), Block(2 * c, 4 * c, 2), Block(4 * c, 8 * c, 2),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * c, 97)).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, fused=True)
    for i, (x, y) in enumerate(loader, 1):
        x = x.to(device, non_blocking=True).permute(0, 3, 1, 2).float() / 255
        y = y.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 40 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
