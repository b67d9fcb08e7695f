"""Train a residual network on leaf photographs, with blurred and mirrored crops."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
IMAGES, SIDE, CROP = (1536, 256, 224) if GPU else (24, 40, 32)
BATCH, EPOCHS, WORKERS = (128, 9, 10) if GPU else (8, 1, 0)
WIDTH = 64 if GPU else 8
CLASSES = 98


class Leaves(Dataset):
    kernel = np.array([0.06, 0.24, 0.40, 0.24, 0.06], dtype=np.float32)

    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        self.photos = rng.integers(0, 256, (count, SIDE, SIDE, 3), dtype=np.uint8)
        self.species = rng.integers(0, CLASSES, count)

    def __len__(self):
        return len(self.photos)

    def blur(self, crop):
        crop = crop.astype(np.float32)
        padded = np.pad(crop, ((2, 2), (0, 0), (0, 0)))
        return sum(weight * padded[i : i + len(crop)] for i, weight in enumerate(self.kernel))

    def __getitem__(self, index):
        top, left = torch.randint(SIDE - CROP, (2,)).tolist()
        crop = self.photos[index, top : top + CROP, left : left + CROP]
        if torch.rand(()) < 0.5:
            crop = crop[:, ::-1]
        crop = self.blur(self.blur(crop).transpose(1, 0, 2)).transpose(1, 0, 2)
        crop = np.ascontiguousarray(crop.clip(0, 255).astype(np.uint8))
        return torch.from_numpy(crop), int(self.species[index])


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x), inplace=True)


def build():
    w = WIDTH
    layers = [nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for cin, cout, stride in [(w, w, 1), (w, w, 1), (w, 2 * w, 2), (2 * w, 2 * w, 1), (2 * w, 4 * w, 2), (4 * w, 4 * w, 1)]:
        layers.append(Residual(cin, cout, stride))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, CLASSES)]
    return nn.Sequential(*layers)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(
        Leaves(IMAGES),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=WORKERS,
        pin_memory=GPU,
        persistent_workers=WORKERS > 0,
    )
    model = build().to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, fused=GPU)
    mean = torch.tensor([123.7, 116.3, 103.5], device=DEVICE).view(1, 3, 1, 1)
    std = torch.tensor([58.4, 57.1, 57.4], device=DEVICE).view(1, 3, 1, 1)

    for epoch in range(EPOCHS):
        total = torch.zeros((), device=DEVICE)
        for photos, species in loader:
            photos = photos.to(DEVICE, non_blocking=True).permute(0, 3, 1, 2)
            species = species.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
                logits = model((photos - mean) / std)
                loss = F.cross_entropy(logits, species, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
