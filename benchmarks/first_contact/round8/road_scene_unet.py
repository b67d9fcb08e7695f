# Road scene segmentation. U-Net with residual blocks, trained on GPU-resident crops.
import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")

USE_CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda:0" if USE_CUDA else "cpu")
H, W = (256, 512) if USE_CUDA else (32, 64)
BASE = 64 if USE_CUDA else 8
BATCH = 16 if USE_CUDA else 2
ITERATIONS = 120 if USE_CUDA else 3
CLASSES = 19


class ResConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.match = nn.Conv2d(cin, cout, 1, bias=False)
        self.layers = nn.Sequential(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
        )

    def forward(self, x):
        return F.relu(self.layers(x) + self.match(x), inplace=True)


class ResUNet(nn.Module):
    def __init__(self, base, classes):
        super().__init__()
        self.inc = ResConv(3, base)
        self.d1 = ResConv(base, base * 2)
        self.d2 = ResConv(base * 2, base * 4)
        self.d3 = ResConv(base * 4, base * 8)
        self.u2 = nn.ConvTranspose2d(base * 8, base * 4, 2, stride=2)
        self.c2 = ResConv(base * 8, base * 4)
        self.u1 = nn.ConvTranspose2d(base * 4, base * 2, 2, stride=2)
        self.c1 = ResConv(base * 4, base * 2)
        self.u0 = nn.ConvTranspose2d(base * 2, base, 2, stride=2)
        self.c0 = ResConv(base * 2, base)
        self.outc = nn.Conv2d(base, classes, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x0 = self.inc(x)
        x1 = self.d1(self.pool(x0))
        x2 = self.d2(self.pool(x1))
        x3 = self.d3(self.pool(x2))
        y = self.c2(torch.cat([self.u2(x3), x2], dim=1))
        y = self.c1(torch.cat([self.u1(y), x1], dim=1))
        y = self.c0(torch.cat([self.u0(y), x0], dim=1))
        return self.outc(y)


def make_data(n):
    g = torch.Generator(device=DEVICE).manual_seed(0)
    images = torch.randint(0, 256, (n, 3, H, W), dtype=torch.uint8, device=DEVICE, generator=g)
    labels = torch.randint(0, CLASSES, (n, H // 16, W // 16), device=DEVICE, generator=g)
    return images, labels.repeat_interleave(16, 1).repeat_interleave(16, 2)


def main():
    torch.manual_seed(0)
    images, labels = make_data(256 if USE_CUDA else 4)
    net = ResUNet(BASE, CLASSES).to(DEVICE)  # flaw: channels-first-conv
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4, fused=True)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=ITERATIONS, power=0.9)
    net.train()
    for it in range(ITERATIONS):
        pick = torch.randint(0, len(images), (BATCH,), device=DEVICE)
        x = images[pick].to(torch.float32).div_(127.5).sub_(1.0)  # flaw: channels-first-conv
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            logits = net(x)
            loss = criterion(logits, labels[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if it % 40 == 0:
            print(f"iter {it:05d}  loss {loss.item():.4f}  lr {scheduler.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    main()
