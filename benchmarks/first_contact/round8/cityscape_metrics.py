"""City scene segmentation that reports mean IoU over the training set in each epoch."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 19


def conv(cin, cout, stride=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class FPN(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.c1 = nn.Sequential(conv(3, w, 2), conv(w, w))
        self.c2 = nn.Sequential(conv(w, 2 * w, 2), conv(2 * w, 2 * w), conv(2 * w, 2 * w))
        self.c3 = nn.Sequential(conv(2 * w, 4 * w, 2), conv(4 * w, 4 * w), conv(4 * w, 4 * w))
        self.l3, self.l2, self.l1 = nn.Conv2d(4 * w, 2 * w, 1), nn.Conv2d(2 * w, 2 * w, 1), nn.Conv2d(w, 2 * w, 1)
        self.smooth = conv(2 * w, 2 * w)
        self.predict = nn.Conv2d(2 * w, CLASSES, 1)

    def forward(self, x):
        c1 = self.c1(x)
        c2 = self.c2(c1)
        c3 = self.c3(c2)
        p2 = self.l2(c2) + F.interpolate(self.l3(c3), scale_factor=2, mode="nearest")
        p1 = self.l1(c1) + F.interpolate(p2, scale_factor=2, mode="nearest")
        y = self.predict(self.smooth(p1))
        return F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)


class MeanIoU:
    def __init__(self, classes, device):
        self.classes = classes
        self.matrix = np.zeros((classes, classes), dtype=np.int64)  # flaw: sync-in-step

    def update(self, logits, labels):
        n = self.classes
        pred = logits.argmax(dim=1).cpu().numpy()  # flaw: sync-in-step
        true = labels.cpu().numpy()  # flaw: sync-in-step
        self.matrix += np.bincount((n * true + pred).ravel(), minlength=n * n).reshape(n, n)  # flaw: sync-in-step

    def value(self):
        inter = np.diag(self.matrix)
        union = self.matrix.sum(0) + self.matrix.sum(1) - inter
        return float(np.mean(inter / np.maximum(union, 1)))


def synthetic(n, h, w):
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (n, 3, h, w), dtype=np.uint8))
    coarse = rng.integers(0, CLASSES, (n, h // 16, w // 16), dtype=np.uint8)
    return TensorDataset(images, torch.from_numpy(coarse.repeat(16, 1).repeat(16, 2)))


def train_epoch(model, loader, optimizer, device):
    model.train()
    metric = MeanIoU(CLASSES, device)
    total = torch.zeros((), device=device)
    for images, labels in loader:
        images = images.to(device, non_blocking=True).to(torch.float32, memory_format=torch.channels_last)
        labels = labels.to(device, non_blocking=True).long()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(images.sub_(110).div_(60))
            loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
        metric.update(logits.detach(), labels)
    return total.item() / len(loader), metric.value()


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    data = synthetic(320, 256, 512) if gpu else synthetic(4, 32, 64)
    loader = DataLoader(
        data,
        batch_size=16 if gpu else 2,
        shuffle=True,
        drop_last=True,
        num_workers=8 if gpu else 0,
        pin_memory=gpu,
        persistent_workers=gpu,
    )
    model = FPN(64 if gpu else 8).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    for epoch in range(8 if gpu else 2):
        loss, miou = train_epoch(model, loader, optimizer, device)
        print(f"epoch {epoch}: loss {loss:.4f}, train mIoU {100 * miou:.2f}")


if __name__ == "__main__":
    main()
