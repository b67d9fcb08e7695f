"""A convolutional classifier fed by workers with pinned, small 8-bit batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self):
        self.pixels = torch.randint(0, 256, (256, 3, 128, 128), dtype=torch.uint8)

    def __len__(self):
        return 128 * 320

    def __getitem__(self, i):
        return self.pixels[i % 256], i % 100


def unit(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def main():
    torch.backends.cudnn.benchmark = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(
        unit(3, 64), unit(64, 128, 2), unit(128, 256), unit(256, 256), unit(256, 512, 2), unit(512, 512),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 100),
    ).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, fused=True)
    loader = DataLoader(Photos(), 128, num_workers=8, pin_memory=True, persistent_workers=True, prefetch_factor=4, drop_last=True)
    for x, y in loader:
        x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
        y = y.to(device, non_blocking=True)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(net(x / 255), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
