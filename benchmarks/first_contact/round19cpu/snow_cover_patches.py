# Snow cover from multispectral patches with a small separable-convolution network.
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

BANDS, SIDE, BATCH, STEPS, CLASSES = 6, 32, 16, 300, 5


def conv_bn(inp, out, kernel, stride=1, groups=1, act=True):
    layers = [nn.Conv2d(inp, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]
    if act:
        layers.append(nn.ReLU6(inplace=True))
    return nn.Sequential(*layers)


class InvertedResidual(nn.Module):
    def __init__(self, inp, out, expand, stride, kernel):
        super().__init__()
        mid = inp * expand
        self.skip = stride == 1 and inp == out
        self.body = nn.Sequential(
            conv_bn(inp, mid, 1),
            conv_bn(mid, mid, kernel, stride, groups=mid),
            conv_bn(mid, out, 1, act=False),
        )

    def forward(self, x):
        y = self.body(x)
        return x + y if self.skip else y


SETTINGS = [
    # in, out, expand, stride, kernel
    (16, 16, 3, 1, 5),
    (16, 24, 3, 2, 5),
    (24, 24, 4, 1, 5),
    (24, 40, 4, 2, 5),
    (40, 40, 4, 1, 5),
]


class SnowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv_bn(BANDS, 16, 3)
        self.blocks = nn.Sequential(*[InvertedResidual(*s) for s in SETTINGS])
        self.head = nn.Linear(40, CLASSES)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(x.mean((2, 3)))


def patches(count, gen):
    """Reflectance patches: brightness and the green/infrared contrast depend on the class."""
    kind = torch.randint(CLASSES, (count,), generator=gen)
    terrain = F.interpolate(torch.randn(count, 1, 5, 5, generator=gen), size=SIDE, mode="bilinear")
    cover = kind.float()[:, None, None, None] / (CLASSES - 1)
    snow = torch.sigmoid(4 * (terrain + 2 * cover - 1))
    slope = torch.linspace(1, -1, BANDS)[None, :, None, None]
    scene = snow * slope + 0.4 * torch.randn(count, BANDS, SIDE, SIDE, generator=gen)
    return scene, kind


gen = torch.Generator().manual_seed(3)
torch.manual_seed(3)
scenes, kinds = patches(1200, gen)

net = SnowNet()  # flaw: channels-first-conv
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True)

running = torch.zeros(())
for step in range(STEPS):
    for group in optimizer.param_groups:
        group["lr"] = 0.025 * (1 + math.cos(math.pi * step / STEPS))
    rows = torch.randint(len(scenes), (BATCH,), generator=gen)
    loss = F.cross_entropy(net(scenes[rows]), kinds[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.detach()
    if (step + 1) % 60 == 0:
        print(f"step {step + 1:4d}  loss {running.item() / 60:.4f}", flush=True)
        running.zero_()

net.eval()
with torch.inference_mode():
    test, truth = patches(240, gen)
    found = torch.cat([net(part).argmax(1) for part in test.split(60)])
print(f"accuracy {(found == truth).float().mean():.3f}")
