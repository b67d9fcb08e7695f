"""Action recognition from short clips with factorised (2+1)D convolutions."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CFG = {
    "frames": 16,
    "size": 112,
    "batch": 32,
    "clips": 32 * 70,
    "width": 64,
    "classes": 101,
    "num_workers": 12,
}
if not torch.cuda.is_available():
    CFG.update(frames=4, size=32, batch=2, clips=6, width=8, num_workers=1)


class Clips(Dataset):
    def __init__(self, cfg):
        self.cfg = cfg
        rng = np.random.default_rng(5)
        side = cfg["size"] + 16
        self.videos = rng.integers(0, 256, (12, cfg["frames"] * 3, side, side, 3), dtype=np.uint8)

    def __len__(self):
        return self.cfg["clips"]

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        video, n, size = self.videos[i % 12], self.cfg["frames"], self.cfg["size"]
        stride = int(rng.integers(1, 3))
        start = int(rng.integers(0, len(video) - n * stride + 1))
        top, left = rng.integers(0, video.shape[1] - size + 1, 2)
        clip = video[start : start + n * stride : stride, top : top + size, left : left + size]
        clip = clip.astype(np.float32) / 255.0
        gain = rng.uniform(0.7, 1.3, 3).astype(np.float32)
        grey = clip.mean(axis=-1, keepdims=True)
        clip = np.clip(grey + (clip - grey) * gain, 0, 1)
        clip = (clip - 0.45) / 0.225
        if rng.random() < 0.5:
            clip = clip[:, :, ::-1]
        return torch.from_numpy(np.ascontiguousarray(clip.transpose(3, 0, 1, 2))), i % self.cfg["classes"]


class Conv2Plus1D(nn.Sequential):
    def __init__(self, cin, cout, stride=1):
        super().__init__(
            nn.Conv3d(cin, cout, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
            nn.BatchNorm3d(cout),
            nn.ReLU(inplace=True),
            nn.Conv3d(cout, cout, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False),
            nn.BatchNorm3d(cout),
            nn.ReLU(inplace=True),
        )


def build(cfg):
    w = cfg["width"]
    return nn.Sequential(
        nn.Conv3d(3, w, (1, 4, 4), (1, 4, 4)),
        Conv2Plus1D(w, w),
        Conv2Plus1D(w, 2 * w, 2),
        Conv2Plus1D(2 * w, 2 * w),
        Conv2Plus1D(2 * w, 4 * w, 2),
        Conv2Plus1D(4 * w, 4 * w),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(4 * w, cfg["classes"]),
    )


def train(cfg):
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    loader = DataLoader(
        Clips(cfg),
        batch_size=cfg["batch"],
        shuffle=True,
        num_workers=cfg["num_workers"],
        pin_memory=cuda,
        persistent_workers=True,
        drop_last=True,
    )
    model = build(cfg).to(device, memory_format=torch.channels_last_3d)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, nesterov=True, fused=True)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for step, (clips, labels) in enumerate(loader):
        clips, labels = clips.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = criterion(model(clips), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (step + 1) % 20 == 0:
            print(f"step {step + 1}/{len(loader)} loss {loss.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    train(CFG)
