"""Flood mapping from radar tiles; the mean IoU over the epoch is shown at its end."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY", "") not in ("", "0")
DEV = "cuda" if torch.cuda.is_available() else "cpu"
KINDS = 5
torch.backends.cudnn.benchmark = True


class MeanIoU:
    def __init__(self, kinds):
        self.kinds = kinds
        self.reset()

    def reset(self):
        self.guesses, self.truths = [], []  # flaw: memory-growth

    def update(self, scores, truth):
        self.guesses.append(scores.argmax(1))  # flaw: memory-growth
        self.truths.append(truth)  # flaw: memory-growth

    def compute(self):
        hits = torch.zeros(self.kinds, device=DEV)
        either = torch.zeros(self.kinds, device=DEV)
        for guess, truth in zip(self.guesses, self.truths):  # flaw: memory-growth
            a, b, both = count(guess, truth, self.kinds)
            hits += both
            either += a + b - both
        return (hits / either.clamp(min=1)).mean().item()


def count(guess, truth, kinds):
    pairs = (truth * kinds + guess).flatten()
    table = torch.histc(pairs.float(), kinds * kinds, 0, kinds * kinds).view(kinds, kinds)
    return table.sum(0), table.sum(1), table.diagonal()


def layer(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))


def make_net(w):
    return nn.Sequential(
        layer(2, w, 2), layer(w, 2 * w, 2), layer(2 * w, 4 * w), *[layer(4 * w, 4 * w) for _ in range(9)],
        nn.Conv2d(4 * w, KINDS * 16, 1), nn.PixelShuffle(4),
    )


def epoch(net, opt, metric, steps, batch, edge):
    metric.reset()
    loss_of = nn.CrossEntropyLoss()
    for _ in range(steps):
        echo = torch.randn(batch, 2, edge, edge, device=DEV)
        truth = (echo.sum(1).abs() * 2).long().clamp_(max=KINDS - 1)
        with torch.autocast(DEV, dtype=torch.bfloat16):
            scores = net(echo.contiguous(memory_format=torch.channels_last))
            loss = loss_of(scores, truth)
        opt.zero_grad()
        loss.backward()
        opt.step()
        metric.update(scores.detach(), truth)
    return loss.item(), metric.compute()


def main():
    torch.manual_seed(2)
    net = make_net(4 if TINY else 64).to(DEV, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    loss, iou = epoch(net, opt, MeanIoU(KINDS), *((4, 2, 16) if TINY else (340, 16, 512)))
    print(f"loss {loss:.3f} mIoU {iou:.3f}")


main()
