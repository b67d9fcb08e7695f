"""Fused inverted-residual network with squeeze-and-excitation for a birds data set."""
import torch
from torch import nn
from torch.nn import functional as F


def conv_bn(cin, cout, kernel=1, stride=1):
    conv = nn.Conv2d(cin, cout, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(cout))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, ratio=4):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // ratio)
        self.fc2 = nn.Linear(channels // ratio, channels)

    def forward(self, x):
        b, c = x.shape[:2]
        s = x.mean((2, 3))
        s = self.fc2(F.silu(self.fc1(s))).sigmoid()
        return x * s.view(b, c, 1, 1)


class FusedInvertedResidual(nn.Module):
    def __init__(self, cin, cout, stride, expand=4):
        super().__init__()
        mid = cin * expand
        self.expand = conv_bn(cin, mid, 3, stride)
        self.attend = SqueezeExcite(mid)
        self.project = conv_bn(mid, cout)
        self.residual = stride == 1 and cin == cout

    def forward(self, x):
        h = F.silu(self.expand(x), inplace=True)
        h = self.project(self.attend(h))
        return x + h if self.residual else h


class Birds(nn.Module):
    def __init__(self, w, classes=200):
        super().__init__()
        self.stem = conv_bn(3, w, 3, 2)
        self.blocks = nn.Sequential(
            FusedInvertedResidual(w, w, 1),
            FusedInvertedResidual(w, 2 * w, 2),
            FusedInvertedResidual(2 * w, 2 * w, 1),
            FusedInvertedResidual(2 * w, 4 * w, 2),
            FusedInvertedResidual(4 * w, 4 * w, 1),
            FusedInvertedResidual(4 * w, 4 * w, 1),
        )
        self.head = nn.Linear(4 * w, classes)

    def forward(self, x):
        x = self.blocks(F.silu(self.stem(x), inplace=True))
        return self.head(x.mean((2, 3)))


class Loop:
    """A minimal training loop with callbacks."""

    def __init__(self, model, optimizer, callbacks=()):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks

    def run(self, batches):
        for step, (x, y) in enumerate(batches):
            with torch.autocast(x.device.type, dtype=torch.bfloat16):
                loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback(step, loss.detach())


def log_every(n):
    def callback(step, loss):
        if step % n == 0:
            print(f"step {step}: loss {loss.item():.4f}")

    return callback


def batches(images, labels, size, count):
    for _ in range(count):
        pick = torch.randint(len(images), (size,), device=images.device)
        x = images[pick].float().div_(255)
        yield x.contiguous(memory_format=torch.channels_last), labels[pick]


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    width, size, side, count = (48, 128, 160, 120) if gpu else (16, 2, 32, 3)
    model = Birds(width).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=gpu)
    images = torch.randint(0, 256, (4 * size, 3, side, side), dtype=torch.uint8, device=device)
    labels = torch.randint(0, 200, (4 * size,), device=device)
    Loop(model, optimizer, [log_every(60)]).run(batches(images, labels, size, count))


if __name__ == "__main__":
    main()
