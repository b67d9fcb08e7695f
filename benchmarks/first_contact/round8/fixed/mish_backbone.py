"""CSP backbone with Mish (YOLOv4 style), trained as a classifier before detection."""

import torch
import torch.nn.functional as F
from torch import nn


class Mish(nn.Module):
    def forward(self, x):
        return F.mish(x)


class ConvBNMish(nn.Module):
    def __init__(self, c1, c2, k=1, s=1):
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(c2)
        self.act = Mish()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class ResUnit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.block = nn.Sequential(ConvBNMish(c, c), ConvBNMish(c, c, 3))

    def forward(self, x):
        return x + self.block(x)


class CSPStage(nn.Module):
    def __init__(self, c1, c2, n):
        super().__init__()
        half = c2 // 2
        self.down = ConvBNMish(c1, c2, 3, 2)
        self.left = ConvBNMish(c2, half)
        self.right = nn.Sequential(ConvBNMish(c2, half), *[ResUnit(half) for _ in range(n)], ConvBNMish(half, half))
        self.fuse = ConvBNMish(c2, c2)

    def forward(self, x):
        x = self.down(x)
        return self.fuse(torch.cat([self.right(x), self.left(x)], dim=1))


class CSPDarknet(nn.Module):
    def __init__(self, width=32, depths=(1, 2, 4, 4), classes=1000):
        super().__init__()
        self.stem = ConvBNMish(3, width, 3)
        stages, c = [], width
        for n in depths:
            stages.append(CSPStage(c, 2 * c, n))
            c *= 2
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(c, classes)

    def forward(self, x):
        return self.fc(self.stages(self.stem(x)).mean(dim=(2, 3)))


class Pretrainer:
    def __init__(self, gpu):
        self.device = torch.device("cuda" if gpu else "cpu")
        self.batch, self.side, self.steps = (64, 224, 100) if gpu else (2, 32, 3)
        model = CSPDarknet() if gpu else CSPDarknet(8, (1, 1), 10)
        self.model = model.to(self.device, memory_format=torch.channels_last)
        self.opt = torch.optim.SGD(self.model.parameters(), 0.05, 0.9, weight_decay=5e-5, fused=True)
        self.images = torch.randint(0, 256, (512 if gpu else 8, 3, self.side, self.side), dtype=torch.uint8).to(self.device)
        self.labels = torch.randint(0, self.model.fc.out_features, (len(self.images),), device=self.device)

    def sample(self):
        pick = torch.randint(0, len(self.images), (self.batch,), device=self.device)
        x = self.images[pick].to(torch.bfloat16, memory_format=torch.channels_last)
        return x.div_(255), self.labels[pick]

    def train(self):
        running = torch.zeros((), device=self.device)
        for step in range(1, self.steps + 1):
            x, y = self.sample()
            with torch.autocast(self.device.type, torch.bfloat16):
                loss = F.cross_entropy(self.model(x), y)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            running += loss.detach()
            if step % 25 == 0:
                print(f"{step:5d} {running.item() / 25:.4f}")
                running.zero_()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    Pretrainer(torch.cuda.is_available()).train()
