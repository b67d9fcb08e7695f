"""Centre-point head detector for crowds; targets are drawn from box lists on the fly."""
import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL", "0") == "1"
B, SIDE, WIDTH, BOXES, STEPS = (2, 64, 16, 5, 30) if small else (48, 256, 96, 30, 80)
DOWN = 4
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = dev.type == "cuda"


class Crowd:
    """A rotating set of page-locked image batches with a list of boxes for every image."""

    def __init__(self, batches=6, seed=3):
        self.rng = np.random.default_rng(seed)
        self.images = []
        for _ in range(batches):
            t = torch.randint(0, 256, (B, 3, SIDE, SIDE), dtype=torch.uint8)
            t = t.contiguous(memory_format=torch.channels_last)
            self.images.append(t.pin_memory() if on_gpu else t)
        self.boxes = [self.rng.uniform(0.05, 0.95, (B, BOXES, 2)).astype(np.float32) for _ in range(batches)]

    def __iter__(self):
        k = 0
        while True:
            yield self.images[k % len(self.images)], self.boxes[k % len(self.boxes)]
            k += 1


def draw_heat(centres):
    g = SIDE // DOWN
    heat = np.zeros((B, 1, g, g), dtype=np.float32)
    for b in range(B):
        for cx, cy in centres[b]:
            x, y = int(cx * g), int(cy * g)
            heat[b, 0, max(y - 1, 0):y + 2, max(x - 1, 0):x + 2] = 0.5
            heat[b, 0, y, x] = 1.0
    t = torch.from_numpy(heat)
    return t.pin_memory() if on_gpu else t


def stage(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


def to_device(tensor):
    return tensor.to(dev)  # flaw: blocking-host-copy


def train():
    torch.backends.cudnn.benchmark = True
    net = nn.Sequential(stage(3, WIDTH, 2), stage(WIDTH, 2 * WIDTH, 2),
                        *[stage(2 * WIDTH, 2 * WIDTH, 1) for _ in range(4)],
                        nn.Conv2d(2 * WIDTH, 1, 1)).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.Adam(net.parameters(), lr=2e-4, fused=True)
    history = torch.zeros(STEPS, device=dev)
    for step, (pixels, centres) in zip(range(STEPS), Crowd()):
        x = to_device(pixels)
        heat = to_device(draw_heat(centres))
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            pred = net(x.to(torch.bfloat16) / 255)
        loss = F.binary_cross_entropy_with_logits(pred.float(), heat)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history[step] = loss.detach()
    print("first", history[0].item(), "last", history[-1].item())


train()
