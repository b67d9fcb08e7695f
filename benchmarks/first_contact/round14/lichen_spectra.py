"""Lichen cover from hyperspectral strips: per-pixel mixing network with a little spatial context."""
import os
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

tiny = bool(int(os.environ.get("TINY", "0")))
device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
torch.backends.cudnn.benchmark = True
BANDS, WIDTH, DEPTH, COVERS = (6, 8, 2, 4) if tiny else (48, 64, 16, 16)
BATCH, SIDE, STEPS = (2, 16, 4) if tiny else (64, 128, 450)


class SpectralUnit(nn.Sequential):
    def __init__(self, cin, cout, curved):
        parts = OrderedDict(
            mix=nn.Conv2d(cin, cout, kernel_size=1),  # flaw: conv-bias-before-norm
            stats=nn.BatchNorm2d(cout),
        )
        if curved:
            parts["bend"] = nn.ReLU(inplace=True)
        super().__init__(parts)


class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [BANDS] + [WIDTH] * DEPTH
        self.units = nn.Sequential(*[SpectralUnit(a, b, i % 2 == 0) for i, (a, b) in enumerate(zip(widths, widths[1:]))])
        self.shrink = nn.AvgPool2d(4)
        self.head = nn.Conv2d(WIDTH, COVERS, 1)

    def seed(self, number):
        g = torch.Generator().manual_seed(number)
        with torch.no_grad():
            for p in self.parameters():
                if p.ndim > 1:
                    p.copy_(torch.randn(p.shape, generator=g) * (2 / p[0].numel()) ** 0.5)
            self.head.bias.zero_()
        return self

    def forward(self, strip):
        return self.head(self.shrink(self.units(strip)))


def strips(count):
    g = torch.Generator(device).manual_seed(2)
    raw = torch.randn(count, BANDS, SIDE, SIDE, generator=g, device=device).to(torch.bfloat16)
    raw = raw.to(memory_format=torch.channels_last)
    cover = torch.randint(0, COVERS, (count, SIDE // 4, SIDE // 4), generator=g, device=device)
    step = 0
    while True:
        at = step * BATCH % count
        yield raw[at : at + BATCH], cover[at : at + BATCH]
        step += 1


net = CoverNet().seed(9).to(device, memory_format=torch.channels_last)
optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
seen = torch.zeros((), device=device)
for step, (strip, cover) in zip(range(STEPS), strips(BATCH * 4)):
    optimiser.zero_grad(set_to_none=True)
    with torch.autocast(device.type, torch.bfloat16):
        scores = net(strip)
        loss = F.cross_entropy(scores, cover)
    loss.backward()
    optimiser.step()
    seen += loss.detach()
print("mean loss %.4f" % (seen / STEPS).item())
