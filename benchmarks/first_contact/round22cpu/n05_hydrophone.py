"""Which whale calls? Clips of a hydrophone, with random level and place."""
import sys
import time

import torch
from torch import nn

from n05_hydrophone_lib import CallClips, clip_loader

torch.set_num_threads(1)


def separable(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
        nn.GroupNorm(8, outputs),
        nn.SiLU(inplace=True),
    )


def build(calls):
    return nn.Sequential(separable(1, 16), separable(16, 32), separable(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, calls))


def batches(loader):
    while True:
        yield from loader


def run(steps=300, calls=6, every=50):
    torch.manual_seed(21)
    loader = clip_loader(CallClips(clips=2560, calls=calls, seed=21), batch=32, workers=2)
    net = build(calls)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
    criterion = nn.CrossEntropyLoss()
    total = torch.zeros(())
    for step, (pictures, calls_heard) in zip(range(1, steps + 1), batches(loader)):
        loss = criterion(net(pictures), calls_heard)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % every == 0:
            print(f"step {step}: {total.item() / every:.5f}")
            total.zero_()


if __name__ == "__main__":
    began = time.time()
    run()
    print(f"{time.time() - began:.0f} s", file=sys.stderr)
