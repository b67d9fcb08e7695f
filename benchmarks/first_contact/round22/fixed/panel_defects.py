"""Classify defects of solar cells from stacks of eight electroluminescence exposures."""
import argparse
import os
from collections import OrderedDict

import torch
from torch import nn

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")

DEFECTS = ["sound", "crack", "finger", "inactive", "corrosion", "solder", "scratch", "shunt"]
REGISTRY = {}


def register(name):
    def keep(factory):
        REGISTRY[name] = factory
        return factory

    return keep


def conv_bn(inputs, outputs, kernel=3, stride=1, act=True):
    parts = OrderedDict(
        conv=nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), bn=nn.BatchNorm2d(outputs)
    )
    if act:
        parts["act"] = nn.ReLU(inplace=True)
    return nn.Sequential(parts)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a = conv_bn(inputs, outputs, stride=stride)
        self.b = conv_bn(outputs, outputs, act=False)
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = conv_bn(inputs, outputs, 1, stride, act=False)

    def forward(self, x):
        return torch.relu_(self.b(self.a(x)) + self.skip(x))


class CellNet(nn.Module):
    def __init__(self, widths, repeats, exposures=8):
        super().__init__()
        self.stem = conv_bn(exposures, widths[0], 5, 2)
        stages, last = [], widths[0]
        for number, width in enumerate(widths):
            for again in range(repeats):
                stages.append(Residual(last, width, 2 if number and not again else 1))
                last = width
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(last, len(DEFECTS))

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


@register("cellnet-small")
def small():
    return CellNet((128, 256, 512), 2)


@register("cellnet-nano")
def nano():
    return CellNet((8, 16, 16), 1)


def make_model(name, device):
    return REGISTRY[name]().to(device, memory_format=torch.channels_last)


def make_cells(count, side, device, seed):
    g = torch.Generator(device).manual_seed(seed)
    labels = torch.randint(len(DEFECTS), (count,), device=device, generator=g)
    images = torch.randint(90, 130, (count, 8, side, side), device=device, generator=g, dtype=torch.uint8)
    band = side // len(DEFECTS)
    rows = torch.arange(side, device=device) // band
    images += (rows[None] == labels[:, None]).to(torch.uint8)[:, None, :, None] * 40
    return images, labels


def train_epoch(model, optimizer, images, labels, batch, order, meter, device):
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    for chosen in order.split(batch):
        x = images[chosen].float().sub_(110.0).div_(40.0)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = criterion(model(x), labels[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        meter(loss)


class Meter:
    def __init__(self, every, device):
        self.every, self.seen = every, 0
        self.total = torch.zeros((), device=device)

    def __call__(self, loss):
        self.total += loss.detach()
        self.seen += 1
        if self.seen % self.every == 0:
            print(f"batch {self.seen}: loss {self.total.item() / self.every:.4f}", flush=True)
            self.total.zero_()


def main():
    tiny = os.environ.get("TINY") == "1"
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="cellnet-nano" if tiny else "cellnet-small", choices=REGISTRY)
    p.add_argument("--cells", type=int, default=160 if tiny else 8192)
    p.add_argument("--side", type=int, default=16 if tiny else 128)
    p.add_argument("--batch", type=int, default=16 if tiny else 256)
    p.add_argument("--epochs", type=int, default=4 if tiny else 70)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = p.parse_args()
    torch.manual_seed(41)
    model = make_model(args.model, args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4, fused=True)
    images, labels = make_cells(args.cells, args.side, args.device, seed=43)
    g = torch.Generator(args.device).manual_seed(47)
    meter = Meter(10 if tiny else 64, args.device)
    for _ in range(args.epochs):
        order = torch.randperm(len(images), device=args.device, generator=g)
        train_epoch(model, optimizer, images, labels, args.batch, order, meter, args.device)


if __name__ == "__main__":
    main()
