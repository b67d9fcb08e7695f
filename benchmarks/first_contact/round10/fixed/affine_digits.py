"""Classification of small photographs with random affine augmentation on the GPU."""
import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BIG = device.type == "cuda"
BATCH, SIDE, COUNT, EPOCHS = (128, 128, 4096, 10) if BIG else (8, 32, 32, 1)
WIDTH = 64 if BIG else 8
torch.backends.cudnn.benchmark = True


class Residual(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.a = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.na = nn.BatchNorm2d(cout)
        self.b = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.nb = nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.na(self.a(x)), inplace=True)
        return F.relu(self.nb(self.b(h)) + self.skip(x), inplace=True)


def network(classes=100, w=WIDTH):
    return nn.Sequential(
        nn.Conv2d(3, w, 3, 2, 1, bias=False),
        nn.BatchNorm2d(w),
        nn.ReLU(inplace=True),
        Residual(w, w),
        Residual(w, w),
        Residual(w, 2 * w, 2),
        Residual(2 * w, 2 * w),
        Residual(2 * w, 4 * w, 2),
        Residual(4 * w, 4 * w),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * w, classes),
    )


def random_affine(n):
    """One matrix per picture: rotation, zoom, shear and shift, composed as in albumentations."""
    thetas = np.empty((n, 2, 3), dtype=np.float32)
    for i in range(n):
        angle = math.radians(random.uniform(-25, 25))
        zoom = math.exp(random.uniform(-0.2, 0.2))
        shear = random.uniform(-0.15, 0.15)
        rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        slant = np.array([[1.0, shear], [0.0, 1.0]])
        flip = np.diag([random.choice((-1.0, 1.0)), 1.0])
        thetas[i, :, :2] = rotation @ slant @ flip / zoom
        thetas[i, :, 2] = random.uniform(-0.1, 0.1), random.uniform(-0.1, 0.1)
    return torch.from_numpy(thetas)


def main():
    torch.manual_seed(0)
    random.seed(0)
    images = torch.randint(0, 256, (COUNT, 3, SIDE, SIDE), dtype=torch.uint8)
    labels = torch.randint(0, 100, (COUNT,))
    loader = DataLoader(
        TensorDataset(images, labels),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=8 if BIG else 0,
        persistent_workers=BIG,
        pin_memory=BIG,
    )
    model = network().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True, fused=BIG)
    for epoch in range(EPOCHS):
        running = torch.zeros((), device=device)
        for x, y in loader:
            x = x.to(device, non_blocking=True)
            y = y.to(device, non_blocking=True)
            theta = random_affine(len(x))
            if BIG:
                theta = theta.pin_memory()
            theta = theta.to(device, non_blocking=True)
            x = x.float().div_(255)
            grid = F.affine_grid(theta, x.shape, align_corners=False)
            x = F.grid_sample(x, grid, align_corners=False)
            x = x.to(torch.bfloat16, memory_format=torch.channels_last)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print(f"epoch {epoch}: loss {running.item() / len(loader):.3f}")


if __name__ == "__main__":
    main()
