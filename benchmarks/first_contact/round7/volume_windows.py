"""Sliding-window inference on whole MR volumes with Gaussian blending of overlapping windows."""

import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
VOLUME, WINDOW, PER_BATCH, WIDTH, CASES = ((192, 256, 256), 96, 4, 32, 16) if CUDA else ((24, 24, 24), 16, 2, 4, 1)
TISSUES = 4


def conv(cin, cout):
    return nn.Sequential(nn.Conv3d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm3d(cout), nn.ReLU(inplace=True))


class UNet3d(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.enc1 = nn.Sequential(conv(1, w), conv(w, w))
        self.enc2 = nn.Sequential(conv(w, 2 * w), conv(2 * w, 2 * w))
        self.enc3 = nn.Sequential(conv(2 * w, 4 * w), conv(4 * w, 4 * w))
        self.up2, self.up1 = nn.ConvTranspose3d(4 * w, 2 * w, 2, 2), nn.ConvTranspose3d(2 * w, w, 2, 2)
        self.dec2, self.dec1 = conv(4 * w, 2 * w), conv(2 * w, w)
        self.out = nn.Conv3d(w, TISSUES, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool3d(a, 2))
        c = self.enc3(F.max_pool3d(b, 2))
        b = self.dec2(torch.cat([self.up2(c), b], 1))
        return self.out(self.dec1(torch.cat([self.up1(b), a], 1)))


def gaussian_window(size, device):
    axis = torch.arange(size, device=device) - (size - 1) / 2
    g = torch.exp(-0.5 * (axis / (size / 8)) ** 2)
    return (g[:, None, None] * g[None, :, None] * g[None, None, :]).clamp_min(1e-3)


def corners(shape, window, overlap=0.5):
    step = int(window * (1 - overlap))
    axes = [sorted({*range(0, n - window, step), n - window}) for n in shape]
    return list(itertools.product(*axes))


class SlidingWindowPredictor:
    def __init__(self, net):
        self.net = net
        self.weight = gaussian_window(WINDOW, DEVICE)
        self.corners = corners(VOLUME, WINDOW)

    @staticmethod
    def box(corner):
        return tuple(slice(c, c + WINDOW) for c in corner)

    @torch.inference_mode()
    def predict(self, volume):
        volume = volume.to(DEVICE, torch.bfloat16, non_blocking=True)
        scores = torch.zeros(TISSUES, *VOLUME, device=DEVICE)
        norm = torch.zeros(VOLUME, device=DEVICE)
        for start in range(0, len(self.corners), PER_BATCH):
            batch = self.corners[start : start + PER_BATCH]
            windows = torch.stack([volume[self.box(c)] for c in batch]).unsqueeze(1)
            logits = self.net(windows.contiguous(memory_format=torch.channels_last_3d))
            for corner, logit in zip(batch, logits, strict=True):
                scores[(slice(None), *self.box(corner))].addcmul_(logit, self.weight)
                norm[self.box(corner)].add_(self.weight)
            torch.cuda.empty_cache()  # flaw: cache-emptied-in-step
        return (scores / norm).argmax(0)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    net = UNet3d(WIDTH).eval().to(DEVICE, torch.bfloat16, memory_format=torch.channels_last_3d)
    predictor = SlidingWindowPredictor(net)
    scan = torch.randn(VOLUME)
    scan = scan.pin_memory() if CUDA else scan
    for case in range(CASES):
        labels = predictor.predict(scan)
        counts = torch.bincount(labels.flatten(), minlength=TISSUES).tolist()
        print(f"case {case}: voxels per tissue {counts}")


if __name__ == "__main__":
    main()
