"""Fine-grained flower classification with a small residual network."""
import os

import torch
import torch.nn.functional as F
from torch import nn

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.short = nn.Identity()
        if stride != 1 or cin != cout:
            self.short = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.short(x), inplace=True)


def make_net(widths, classes):
    parts = [nn.Conv2d(3, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    cin = widths[0]
    for i, w in enumerate(widths):
        parts += [BasicBlock(cin, w, 1 if i == 0 else 2), BasicBlock(w, w, 1)]
        cin = w
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, classes))


def main():
    size, batch, steps = (32, 4, 30) if SMALL else (224, 256, 100)
    pool = batch * 4
    widths = (8, 16) if SMALL else (64, 128, 256, 512)
    photos = torch.randint(0, 256, (pool, 3, size, size), dtype=torch.uint8, device=device)
    species = torch.randint(0, 104, (pool,), device=device)
    mean = torch.tensor([0.43, 0.38, 0.29], device=device).view(1, 3, 1, 1)
    std = torch.tensor([0.29, 0.24, 0.27], device=device).view(1, 3, 1, 1)

    net = make_net(widths, 104).to(device)  # flaw: channels-first-conv
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=steps)
    running = torch.zeros((), device=device)
    for step in range(steps):
        pick = torch.randint(0, pool, (batch,), device=device)
        x = (photos[pick].float() / 255 - mean) / std  # flaw: channels-first-conv
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(net(x), species[pick], label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step()
        running += loss.detach()
    print("mean loss", (running / steps).item())


main()
