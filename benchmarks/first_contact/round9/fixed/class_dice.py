"""Scene parsing with 59 classes: cross entropy plus a soft Dice term per class."""

import torch
import torch.nn as nn
import torch.nn.functional as F

gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")
CLASSES = 59 if gpu else 7


class SoftDice(nn.Module):
    def __init__(self, classes, smooth=1.0):
        super().__init__()
        self.classes, self.smooth = classes, smooth

    def forward(self, logits, target):
        probs = logits.softmax(dim=1)
        onehot = F.one_hot(target, self.classes).movedim(-1, 1).to(probs.dtype)
        overlap = (probs * onehot).sum((0, 2, 3))
        size = probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3))
        return 1 - ((2 * overlap + self.smooth) / (size + self.smooth)).mean()


def unit(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Parser(nn.Module):
    """Stride-4 backbone with a coarse context branch."""

    def __init__(self, width, classes):
        super().__init__()
        self.fine = nn.Sequential(unit(3, width, 2), unit(width, 2 * width, 2), unit(2 * width, 2 * width))
        self.coarse = nn.Sequential(unit(2 * width, 4 * width, 2), *[unit(4 * width, 4 * width) for _ in range(6)])
        self.fuse = unit(6 * width, 2 * width)
        self.classify = nn.Conv2d(2 * width, classes, 1)

    def forward(self, x):
        fine = self.fine(x)
        coarse = F.interpolate(self.coarse(fine), scale_factor=2.0, mode="nearest")
        return self.classify(self.fuse(torch.cat([fine, coarse], dim=1)))


class Trainer:
    def __init__(self, model, lr, steps):
        self.model = model
        self.dice = SoftDice(CLASSES)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4, fused=gpu)
        self.schedule = torch.optim.lr_scheduler.PolynomialLR(self.optimizer, steps, power=0.9)

    def step(self, images, target):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = self.model(images)
        logits = logits.float()
        loss = F.cross_entropy(logits, target) + 0.5 * self.dice(logits, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()


def batches(count, batch, size):
    images = torch.randint(0, 256, (8 * batch, 3, size, size), dtype=torch.uint8, device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    masks = torch.randint(0, CLASSES, (8 * batch, size // 4, size // 4), device=device)
    for _ in range(count):
        rows = torch.randint(0, len(images), (batch,), device=device)
        yield images[rows].float().div_(127.5).sub_(1), masks[rows]


def main(steps=120 if gpu else 3, batch=16 if gpu else 2, size=512 if gpu else 32, width=64 if gpu else 8):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    model = Parser(width, CLASSES).to(device, memory_format=torch.channels_last)
    trainer = Trainer(model, 0.01, steps)
    recent = []
    for i, (images, target) in enumerate(batches(steps, batch, size), 1):
        recent.append(trainer.step(images, target))
        if i % 40 == 0 or i == steps:
            print(f"{i:4d}  {torch.stack(recent).mean().item():.4f}")
            recent = []


if __name__ == "__main__":
    main()
