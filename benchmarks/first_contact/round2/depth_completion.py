from functools import partial

import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def berhu(pred, gt, c=0.2):
    d = torch.abs(pred - gt)
    return torch.mean((d ** 2 + c ** 2) / (2 * c))


def smooth_l1(pred, gt, beta=1.0):
    diff = torch.abs(pred - gt)  # flaw: hand-written-loss
    quad = 0.5 * diff ** 2 / beta  # flaw: hand-written-loss
    lin = diff - 0.5 * beta  # flaw: hand-written-loss
    return torch.where(diff < beta, quad, lin).mean()  # flaw: hand-written-loss


LOSSES = dict(berhu=berhu, smooth=partial(smooth_l1, beta=0.5))


class Upsampler(nn.Sequential):
    def __init__(self, c=64, planes=48):
        super().__init__(
            nn.Conv2d(4, c, 4, 4, bias=False), nn.BatchNorm2d(c), nn.ReLU(True),
            nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(True),
            nn.Conv2d(c, planes * 4, 1),
            nn.PixelShuffle(2),
        )


def loop(loss_name="smooth", batch=64, steps=400):
    loss_fn = LOSSES[loss_name]
    net = Upsampler().to(DEVICE, memory_format=torch.channels_last)
    opt = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
    rgbd = torch.randn(batch, 4, 256, 256, device=DEVICE).to(memory_format=torch.channels_last)
    gt = torch.rand(batch, 48, 128, 128, device=DEVICE)
    for s in range(steps):
        with torch.autocast(DEVICE, torch.bfloat16):
            pred = net(rgbd)
        loss = loss_fn(pred.float(), gt)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if s % 100 == 0:
            print(f"{s}: {loss.item():.5f}")


if __name__ == "__main__":
    loop()
