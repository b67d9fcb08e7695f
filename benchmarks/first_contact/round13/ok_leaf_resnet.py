"""Leaf-disease classification: a residual network in channels_last with augmentation on the device."""
import functools
import os

import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
SIZE, BATCH, STEPS, CLASSES, WIDTHS = (32, 8, 5, 16, (16, 32)) if TINY else (128, 512, 170, 64, (64, 128, 256, 512))

torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = True
torch.set_float32_matmul_precision("high")

Conv = functools.partial(nn.Conv2d, bias=False, padding=1, kernel_size=3)


class Unit(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.main = nn.Sequential(Conv(cin, cout, stride=stride), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
                                  Conv(cout, cout), nn.BatchNorm2d(cout))
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return F.relu(self.main(x) + self.skip(x))


def build():
    layers = [Conv(8, WIDTHS[0], stride=2), nn.BatchNorm2d(WIDTHS[0]), nn.ReLU(inplace=True)]
    cin = WIDTHS[0]
    for i, w in enumerate(WIDTHS):
        layers += [Unit(cin, w, 1 if i == 0 else 2), Unit(w, w, 1)]
        cin = w
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, CLASSES))


@torch.no_grad()
def leaves(n, gen):
    """uint8 pictures with eight spectral channels; the class sets the tint."""
    label = torch.randint(CLASSES, (n,), generator=gen, device=DEVICE)
    tint = torch.rand(CLASSES, 8, generator=gen, device=DEVICE)[label][:, :, None, None]
    noise = torch.rand(n, 8, SIZE, SIZE, generator=gen, device=DEVICE)
    return (128 * tint + 127 * noise).byte().contiguous(memory_format=torch.channels_last), label


def augment(batch, flip):
    x = batch.to(torch.bfloat16 if CUDA else torch.float32) / 127.5 - 1
    return torch.where(flip, x.flip(3), x)


def objective(net, batch, flip, label):
    return F.cross_entropy(net(augment(batch, flip)), label, label_smoothing=0.1)


def main():
    gen = torch.Generator(DEVICE).manual_seed(12)
    torch.manual_seed(12)
    pictures, labels = leaves(6 * BATCH, gen)
    net = build().to(DEVICE, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, fused=CUDA)
    criterion = torch.compile(objective) if CUDA else objective
    curve = torch.zeros(STEPS, device=DEVICE)
    for i in range(STEPS):
        part = slice((i % 6) * BATCH, (i % 6 + 1) * BATCH)
        flip = torch.rand(BATCH, 1, 1, 1, generator=gen, device=DEVICE) < 0.5
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=CUDA):
            loss = criterion(net, pictures[part], flip, labels[part])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        curve[i] = loss.detach()
    print("curve", ["%.4f" % v for v in curve[:: max(1, STEPS // 4)].tolist()])


if __name__ == "__main__":
    main()
