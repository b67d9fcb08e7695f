"""Take the cicadas out of rainforest recordings: a U-Net on eight-microphone spectrograms.

usage: python cicada_unmixing.py [key=value ...]     (keys as in DEFAULTS)
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

DEFAULTS = dict(
    steps=900, batch=16, bins=256, frames=256, mics=8, widths="64,128,256", bank=48, lr=1e-3, seed=17, every=100
)
REGISTRY = {}


def register(name):
    def add(builder):
        REGISTRY[name] = builder
        return builder

    return add


def conv(inputs, outputs, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Down(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(conv(inputs, outputs, stride=2), conv(outputs, outputs))


class Up(nn.Module):
    def __init__(self, inputs, skipped, outputs):
        super().__init__()
        self.grow = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.body = nn.Sequential(conv(outputs + skipped, outputs), conv(outputs, outputs))

    def forward(self, x, skip):
        return self.body(torch.cat([self.grow(x), skip], dim=1))


@register("unet")
class UNet(nn.Module):
    def __init__(self, channels, widths):
        super().__init__()
        self.entry = nn.Sequential(conv(channels, widths[0]), conv(widths[0], widths[0]))
        self.downs = nn.ModuleList(Down(a, b) for a, b in zip(widths, widths[1:]))
        self.ups = nn.ModuleList(Up(b, a, a) for a, b in reversed(list(zip(widths, widths[1:]))))
        self.exit = nn.Conv2d(widths[0], channels, 1)

    def forward(self, x):
        skips = [self.entry(x)]
        for down in self.downs:
            skips.append(down(skips[-1]))
        y = skips.pop()
        for up in self.ups:
            y = up(y, skips.pop())
        return self.exit(y)


def build(name, device, **settings):
    model = REGISTRY[name](**settings)
    return model.to(device)  # flaw: channels-first-conv


def forest(opt, device):
    """Clean calls are short bright strokes, cicadas are bands that swell and fade."""
    g = torch.Generator().manual_seed(opt["seed"])
    shape = (opt["bank"], opt["mics"], opt["bins"], opt["frames"])
    calls = F.avg_pool2d((torch.rand(shape, generator=g) > 0.995).float(), (3, 7), stride=1, padding=(1, 3)) * 12
    band = torch.rand(opt["bank"], 1, opt["bins"], 1, generator=g) > 0.8
    swell = torch.rand(opt["bank"], opt["mics"], 1, opt["frames"] // 16, generator=g).repeat_interleave(16, dim=3)
    return calls.to(device), (band * swell).to(device)


def batches(calls, cicadas, size, seed):
    g = torch.Generator(device=calls.device).manual_seed(seed)
    pick = lambda: torch.randint(len(calls), (size,), generator=g, device=calls.device)
    while True:
        clean = calls[pick()]
        yield clean + cicadas[pick()], clean


def main(argv):
    opt = dict(DEFAULTS)
    for item in argv:
        key, value = item.split("=")
        opt[key] = type(DEFAULTS[key])(value)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(opt["seed"])
    model = build("unet", device, channels=opt["mics"], widths=[int(w) for w in opt["widths"].split(",")])
    optimizer = torch.optim.AdamW(model.parameters(), lr=opt["lr"], fused=True)
    feed = batches(*forest(opt, device), opt["batch"], opt["seed"])
    for step in range(opt["steps"]):
        noisy, clean = next(feed)
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(noisy)
            loss = F.l1_loss(guess, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % opt["every"] == 0:
            print(f"[{step + 1}/{opt['steps']}] l1 {loss.item():.5f}")


if __name__ == "__main__":
    main(sys.argv[1:])
