# Land-cover classes from multispectral satellite tiles. Tiles live on the GPU as uint8.
import os
import torch
from torch import nn, optim
from torch.nn import functional as F

tiny = os.getenv("TINY") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
conf = dict(
    tiles=64 if tiny else 4096, bands=8, size=32 if tiny else 128, classes=10,
    batch=8 if tiny else 256, width=16 if tiny else 192, blocks=2 if tiny else 8, steps=8 if tiny else 500,
)
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.an = nn.BatchNorm2d(c)
        self.b = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(c)

    def forward(self, x):
        y = F.relu(self.an(self.a(x)), inplace=True)
        y = self.bn(self.b(y))
        return F.relu(y.add_(x), inplace=True)


def trunk(bands, width, blocks, classes):
    return nn.Sequential(
        nn.Conv2d(bands, width, 4, stride=4, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
        *[Residual(width) for _ in range(blocks)],
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes),
    )


def build(conf):
    net = trunk(conf["bands"], conf["width"], conf["blocks"], conf["classes"])
    for m in net.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
    return net.to(dev)  # flaw: channels-first-conv


class TileBank:
    """Draws random tiles with a flip; all of it on the device."""

    def __init__(self, conf):
        self.gen = torch.Generator(device=dev).manual_seed(1)
        n, b, s = conf["tiles"], conf["bands"], conf["size"]
        self.pixels = torch.randint(0, 256, (n, b, s, s), device=dev, dtype=torch.uint8, generator=self.gen)
        self.label = torch.randint(0, conf["classes"], (n,), device=dev, generator=self.gen)
        for c in range(conf["classes"]):
            self.pixels[:, c % b].masked_fill_((self.label == c).view(-1, 1, 1), 200)

    def draw(self, n):
        pick = torch.randint(0, len(self.pixels), (n,), device=dev, generator=self.gen)
        dtype = torch.bfloat16 if dev.type == "cuda" else torch.float32
        x = self.pixels[pick].to(dtype).div_(128).sub_(1)  # flaw: channels-first-conv
        return x, self.label[pick]


torch.manual_seed(0)
bank = TileBank(conf)
net = build(conf)
opt = optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True, fused=dev.type == "cuda")
history = torch.zeros(conf["steps"], device=dev)

for step in range(conf["steps"]):
    x, y = bank.draw(conf["batch"])
    with torch.autocast(dev.type, torch.bfloat16, enabled=dev.type == "cuda"):
        loss = F.cross_entropy(net(x), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    history[step] = loss.detach()

print("first %.4f  last %.4f" % (history[0].item(), history[-1].item()))
