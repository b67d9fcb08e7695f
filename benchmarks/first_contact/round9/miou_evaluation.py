"""Mean IoU of a semantic segmentation network over a validation set."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
NUM_CLASSES, IGNORE = 19, 255
SIZE, IMAGES, BATCH, WORKERS, WIDTH = (512, 1600, 16, 8, 64) if cuda else (32, 6, 2, 0, 8)


class Streets(Dataset):
    """Validation images; a few distinct ones are kept and served in turn."""

    def __init__(self, n, size):
        rng = np.random.default_rng(0)
        self.n = n
        self.images = torch.from_numpy(rng.integers(0, 256, (64, size, size, 3), dtype=np.uint8)).permute(0, 3, 1, 2)
        labels = rng.integers(0, NUM_CLASSES + 2, (64, size, size), dtype=np.uint8)
        labels[labels >= NUM_CLASSES] = IGNORE
        self.labels = torch.from_numpy(labels)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.images[i % 64], self.labels[i % 64]


def conv_bn(cin, cout, k=3, stride=1, dilation=1):
    pad = dilation * (k // 2)
    return nn.Sequential(
        nn.Conv2d(cin, cout, k, stride, pad, dilation, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class DilatedNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.trunk = nn.Sequential(
            conv_bn(3, w, 3, 2), conv_bn(w, w), conv_bn(w, 2 * w, 3, 2), conv_bn(2 * w, 2 * w), conv_bn(2 * w, 4 * w, 3, 2),
            conv_bn(4 * w, 4 * w), conv_bn(4 * w, 8 * w), conv_bn(8 * w, 8 * w, dilation=2), conv_bn(8 * w, 8 * w, dilation=4),
        )
        self.pyramid = nn.ModuleList(conv_bn(8 * w, 2 * w, 3, dilation=d) for d in (6, 12, 18))
        self.point = conv_bn(8 * w, 2 * w, 1)
        self.head = nn.Sequential(conv_bn(8 * w, 4 * w), nn.Conv2d(4 * w, NUM_CLASSES, 1))

    def forward(self, x):
        size = x.shape[-2:]
        x = self.trunk(x)
        x = torch.cat([self.point(x), *(branch(x) for branch in self.pyramid)], dim=1)
        return F.interpolate(self.head(x), size=size, mode="bilinear", align_corners=False)


def fast_hist(label, pred, n):
    keep = label < n  # flaw: sync-in-step
    pairs = n * label[keep].astype(np.int64) + pred[keep]  # flaw: sync-in-step
    return np.bincount(pairs, minlength=n * n).reshape(n, n)  # flaw: sync-in-step


def per_class_iou(hist):
    return np.diag(hist) / np.maximum(hist.sum(0) + hist.sum(1) - np.diag(hist), 1)


@torch.inference_mode()
def evaluate(model, loader):
    mean = torch.tensor([123.7, 116.3, 103.5], device=device).view(1, 3, 1, 1)
    std = torch.tensor([58.4, 57.1, 57.4], device=device).view(1, 3, 1, 1)
    hist = np.zeros((NUM_CLASSES, NUM_CLASSES), dtype=np.int64)  # flaw: sync-in-step
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        images = ((images - mean) / std).contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            pred = model(images).argmax(1)
        hist += fast_hist(labels.numpy(), pred.cpu().numpy(), NUM_CLASSES)  # flaw: sync-in-step
    return per_class_iou(hist)  # flaw: sync-in-step


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    model = DilatedNet(WIDTH).to(device, memory_format=torch.channels_last).eval()
    dataset = Streets(IMAGES, SIZE)
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=WORKERS, pin_memory=cuda)
    iou = evaluate(model, loader)
    print("mIoU %.4f" % iou.mean())
    print(" ".join(f"{v:.3f}" for v in iou))
