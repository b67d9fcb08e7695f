"""Field boundaries in satellite tiles: a U-Net out of a registry of parts."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = "TINY" in os.environ
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
gpu = torch.cuda.is_available()
where = torch.device("cuda", 0) if gpu else torch.device("cpu")

PARTS = {}


def part(name):
    def keep(thing):
        PARTS[name] = thing
        return thing
    return keep


@part("pair")
class Pair(nn.Sequential):
    def __init__(self, a, b):
        layers = []
        for i, o in ((a, b), (b, b)):
            layers += [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
        super().__init__(*layers)


@part("unet")
class UNet(nn.Module):
    def __init__(self, bands, widths):
        super().__init__()
        pair = PARTS["pair"]
        self.stem = pair(bands, widths[0])
        self.down = nn.ModuleList(pair(a, b) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(pair(a + b, a) for a, b in zip(widths, widths[1:]))
        self.out = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        skips = [self.stem(x)]
        for block in self.down:
            skips.append(block(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for block in reversed(self.up):
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat((x, skips.pop()), 1))
        return self.out(x)


def assemble(config):
    torch.manual_seed(config["seed"])
    net = PARTS[config["model"]](config["bands"], config["widths"])
    return net.train().to(where, memory_format=torch.channels_last)


def tiles(config):
    g = torch.Generator(where).manual_seed(5)
    shape = (config["batch"], config["bands"], config["edge"], config["edge"])
    for _ in range(config["steps"]):
        tile = torch.randn(shape, device=where, generator=g)
        yield tile, (tile[:, :1] + tile[:, 1:2] > 0).float()


CONFIG = dict(model="unet", seed=0, bands=8, widths=(64, 128, 256, 512), batch=16, edge=256, steps=400)
if TINY:
    CONFIG.update(widths=(4, 8, 8), batch=2, edge=16, steps=4)

net = assemble(CONFIG)
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True, fused=True)
for n, (tile, mask) in enumerate(tiles(CONFIG), 1):
    with torch.autocast(where.type, torch.bfloat16):
        loss = F.binary_cross_entropy_with_logits(net(tile).float(), mask)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if n % 100 == 0 or n == CONFIG["steps"]:
        print(n, f"{loss.item():.3f}")
