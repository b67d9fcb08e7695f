# Galaxy morphology: predicts vote fractions from three-band cut-outs.
import os
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def seed_everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False  # flaw: fp32-matmul


class Bottleneck(nn.Module):
    def __init__(self, c, mid):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(c, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, mid, 3, padding=1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, c, 1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        return torch.relu_(self.path(x) + x)


def make_model(width, questions):
    def shrink(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
    return nn.Sequential(
        shrink(3, width), Bottleneck(width, width), Bottleneck(width, width),
        shrink(width, 2 * width), Bottleneck(2 * width, width), Bottleneck(2 * width, width),
        shrink(2 * width, 4 * width), Bottleneck(4 * width, 2 * width),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, questions))


def main():
    seed_everything(11)
    quick = os.environ.get("SMALL", "0") == "1"
    n, side, batch, width = (60, 24, 4, 8) if quick else (1280, 160, 64, 96)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")

    images = torch.randint(0, 256, (n, 3, side, side), dtype=torch.uint8)
    votes = torch.rand(n, 32)
    loader = DataLoader(TensorDataset(images, votes), batch, shuffle=True, drop_last=True,
                        num_workers=1 if quick else 8, pin_memory=cuda, persistent_workers=True)

    model = make_model(width, 32).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=cuda)
    criterion = nn.BCEWithLogitsLoss()

    for epoch in range(2 if quick else 4):
        running = torch.zeros((), device=device)
        for x, y in loader:
            x = x.to(device, non_blocking=True).to(torch.float32, memory_format=torch.channels_last).div_(255)
            y = y.to(device, non_blocking=True)
            logits = model(x)  # flaw: fp32-matmul
            loss = criterion(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print("epoch", epoch, "bce", running.item() / len(loader))


if __name__ == "__main__":
    main()
