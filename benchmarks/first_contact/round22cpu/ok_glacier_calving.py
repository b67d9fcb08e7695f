"""Calving-front segmentation on radar chips; a small U-shaped network, a plain loop."""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


class FrontNet(nn.Module):
    def __init__(self, base=16):
        super().__init__()
        self.fine, self.mid, self.deep = block(1, base), block(base, 2 * base), block(2 * base, 4 * base)
        self.join_mid, self.join_fine = block(6 * base, 2 * base), block(3 * base, base)
        self.out = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        a = self.fine(x)
        b = self.mid(F.max_pool2d(a, 2))
        c = self.deep(F.max_pool2d(b, 2))
        b = self.join_mid(torch.cat([b, F.interpolate(c, scale_factor=2)], 1))
        a = self.join_fine(torch.cat([a, F.interpolate(b, scale_factor=2)], 1))
        return self.out(a)


def chips(count, side, seed):
    """Ice to the left of a rough front, water with speckle to the right."""
    rng = np.random.default_rng(seed)
    rough = rng.normal(0, 1.5, (count, side)).cumsum(1)
    front = side / 2 + rough + rng.uniform(-12, 12, (count, 1))
    ice = np.arange(side)[None, None] < front[:, :, None]
    echo = np.where(ice, 0.7, 0.35) * rng.gamma(4, 0.25, (count, side, side))
    return torch.from_numpy(echo.astype(np.float32))[:, None], torch.from_numpy(ice.astype(np.float32))[:, None]


@torch.inference_mode()
def overlap(net, images, masks, rows):
    net.eval()
    hit, either = 0, 0
    for x, y in zip(images.split(rows), masks.split(rows)):
        guess = net(x) > 0
        hit += (guess & (y > 0.5)).sum()
        either += (guess | (y > 0.5)).sum()
    net.train()
    return (hit / either).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--side", type=int, default=64)
    ap.add_argument("--rows", type=int, default=16)
    ap.add_argument("--steps", type=int, default=240)
    ap.add_argument("--lr", type=float, default=1e-3)
    opt = ap.parse_args()

    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, masks = (t.to(device) for t in chips(640, opt.side, 2))
    held, train = slice(0, 128), torch.arange(128, 640, device=device)
    net = FrontNet().to(device)
    if device.type == "cuda":
        net = net.to(memory_format=torch.channels_last)
    adam = torch.optim.AdamW(net.parameters(), lr=opt.lr, weight_decay=1e-3, fused=True)

    running, begin = torch.zeros((), device=device), time.perf_counter()
    for step in range(1, opt.steps + 1):
        pick = train[torch.randint(len(train), (opt.rows,), device=device)]
        loss = F.binary_cross_entropy_with_logits(net(images[pick]), masks[pick])
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        running += loss.detach()
        if step % 60 == 0:
            took = (time.perf_counter() - begin) / 60 * 1e3
            iou = overlap(net, images[held], masks[held], 32)
            print(f"{step:4d}  bce {running.item() / 60:.4f}  iou {iou:.3f}  {took:.1f} ms", flush=True)
            running.zero_()
            begin = time.perf_counter()


if __name__ == "__main__":
    main()
