"""Multi-organ segmentation of CT patches with a residual 3D encoder-decoder."""
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F


def default_device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass
class Settings:
    device: torch.device = field(default_factory=default_device)
    organs: int = 16
    width: int = 32
    patch: int = 96
    batch: int = 4
    steps: int = 100
    lr: float = 1e-3
    dice: float = 0.5

    def __post_init__(self):
        if self.device.type == "cpu":
            self.width, self.patch, self.batch, self.steps = 4, 16, 1, 2


class Unit(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv = nn.Conv3d(cin, cout, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm3d(cout)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)), inplace=True)


class Network(nn.Module):
    def __init__(self, s):
        super().__init__()
        w = s.width
        self.a = Unit(1, w)
        self.b = nn.Sequential(Unit(w, 2 * w, 2), Unit(2 * w, 2 * w))
        self.c = nn.Sequential(Unit(2 * w, 4 * w, 2), Unit(4 * w, 4 * w))
        self.up_c = nn.ConvTranspose3d(4 * w, 2 * w, 2, 2)
        self.up_b = nn.ConvTranspose3d(2 * w, w, 2, 2)
        self.merge = Unit(2 * w, 2 * w)
        self.out = nn.Conv3d(w, s.organs, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        b = self.merge(self.up_c(self.c(b)) + b)
        return self.out(self.up_b(b) + a)


def voxel_loss(logits, target, weight):
    """Class-weighted cross entropy per voxel."""
    return F.cross_entropy(logits, target, weight=weight)


def foreground_dice(logits, target):
    """Soft Dice of body against background, from the logits of class 0."""
    body = 1 - torch.sigmoid(logits[:, 0].float())
    truth = (target > 0).float()
    overlap = (body * truth).sum((1, 2, 3))
    return 1 - (2 * overlap / (body.sum((1, 2, 3)) + truth.sum((1, 2, 3)) + 1e-5)).mean()


def synthetic(s):
    p = s.patch
    scan = torch.randn(3, s.batch, 1, p, p, p, device=s.device)
    smooth = F.avg_pool3d(scan.flatten(0, 1), 9, 1, 4)
    low, high = smooth.aminmax()
    organ = ((smooth - low) / (high - low) * (s.organs - 1)).round().long()
    return scan, organ.view(3, s.batch, p, p, p)


def main(s=None):
    s = s or Settings()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    net = Network(s).to(s.device, memory_format=torch.channels_last_3d)
    optimizer = torch.optim.SGD(net.parameters(), s.lr, 0.99, nesterov=True, fused=s.device.type == "cuda")
    scan, organ = synthetic(s)
    weight = torch.linspace(0.5, 2.0, s.organs, device=s.device)
    for step in range(s.steps):
        x = scan[step % 3].contiguous(memory_format=torch.channels_last_3d)
        y = organ[step % 3]
        with torch.autocast(s.device.type, dtype=torch.bfloat16):
            logits = net(x)
            loss = voxel_loss(logits, y, weight) + s.dice * foreground_dice(logits, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
