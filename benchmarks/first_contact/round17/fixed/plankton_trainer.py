import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = bool(os.environ.get("TINY"))


class PlacementMixin:
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def place(self, module):
        return module.to(self.device, memory_format=torch.channels_last)


class BaseTrainer(PlacementMixin):
    steps = 4 if TINY else 320

    def __init__(self):
        torch.manual_seed(11)
        self.net = self.place(self.build())
        self.opt = self.optimizer(self.net.parameters())

    def optimizer(self, params):
        return torch.optim.SGD(params, lr=0.02, momentum=0.9, fused=True)

    def fit(self):
        total = torch.zeros((), device=self.device)
        for step in range(self.steps):
            x, y = self.batch(step)
            with torch.autocast(self.device, dtype=torch.bfloat16):
                loss = self.loss(self.net(x), y)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            total += loss.detach()
        return total.item() / self.steps


class Bottle(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        mid = cout // 2
        self.path = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True),
            nn.Conv2d(mid, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout),
        )
        self.short = nn.Identity() if cin == cout and stride == 1 else nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.path(x) + self.short(x), inplace=True)


class PlanktonNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        sizes = [width, 2 * width, 4 * width, 8 * width]
        self.stem = nn.Conv2d(4, width, 5, 2, 2, bias=False)
        stages, cin = [], width
        for i, cout in enumerate(sizes):
            for j in range(2):
                stages.append(Bottle(cin, cout, 2 if i and not j else 1))
                cin = cout
        self.stages = nn.Sequential(*stages)
        self.top = nn.Linear(cin, classes)

    def forward(self, x):
        return self.top(self.stages(self.stem(x)).mean((2, 3)))


class PlanktonTrainer(BaseTrainer):
    size, rows, classes = (32, 4, 6) if TINY else (160, 96, 120)

    def __init__(self):
        super().__init__()
        self.bank = torch.randn(self.rows * 4, 4, self.size, self.size, device=self.device)
        self.names = torch.randint(self.classes, (self.rows * 4,), device=self.device)

    def build(self):
        return PlanktonNet(8 if TINY else 128, self.classes)

    def batch(self, step):
        at = step % 4 * self.rows
        return self.bank[at : at + self.rows], self.names[at : at + self.rows]

    def loss(self, out, y):
        return F.cross_entropy(out, y, label_smoothing=0.1)


print(f"plankton {PlanktonTrainer().fit():.3f}")
