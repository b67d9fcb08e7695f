import gc
import os
import random

import torch
from torch import nn
from torch.nn import functional as F

SMALL = os.environ.get("SMALL") == "1"


class Annotations:
    """All boxes of the set as plain dictionaries, as the JSON has them."""

    def __init__(self, images, per_image):
        r = random.Random(9)
        self.rows = [[{"kind": r.randrange(19), "box": [r.random(), r.random()]} for _ in range(per_image)] for _ in range(images)]

    def kinds(self):
        return torch.tensor([[b["kind"] for b in row] for row in self.rows])


class SceneNet(nn.Module):
    def __init__(self, c, kinds):
        super().__init__()
        def unit(i, o, s):
            return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))
        self.body = nn.Sequential(unit(3, c, 2), unit(c, 2 * c, 2), unit(2 * c, 2 * c, 1), unit(2 * c, 4 * c, 2))
        self.head = nn.Linear(4 * c, kinds)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def fit(net, opt, photos, present, steps, batch, device):
    loss = None
    for i in range(steps):
        pick = torch.randint(len(photos), (batch,), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            out = net(photos[pick].contiguous(memory_format=torch.channels_last))
        loss = F.binary_cross_entropy_with_logits(out.float(), present[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        gc.collect()  # flaw: gc-pause-in-step
    return loss


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    count, per, side, c, batch, steps = (40, 4, 16, 4, 2, 30) if SMALL else (20000, 10, 192, 32, 64, 100)
    notes = Annotations(count, per)
    pool = min(count, 512)
    present = torch.zeros(pool, 19).scatter_(1, notes.kinds()[:pool], 1.0).to(device)
    photos = torch.rand(pool, 3, side, side, device=device).contiguous(memory_format=torch.channels_last)
    net = SceneNet(c, 19).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, fused=True)
    print("last loss", fit(net, opt, photos, present, steps, batch, device).item())


if __name__ == "__main__":
    main()
