"""Classifies glyphs of palimpsests; a concordance of all readings stays in memory for later lookups."""
import os
import random
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"


class Callback:
    def after_batch(self, trainer): ...
    def after_run(self, trainer): ...


class Averages(Callback):
    def __init__(self):
        self.sum = torch.zeros((), device=DEV)

    def after_batch(self, trainer):
        self.sum += trainer.loss

    def after_run(self, trainer):
        print(f"mean loss {self.sum.item() / trainer.done:.4f}")


def concordance(entries):
    rng = random.Random(0)
    return {f"folio{i}": {"glyphs": [rng.randrange(96) for _ in range(4)], "hand": [i % 7], "lines": [[i, i + 1]]}
            for i in range(entries)}


def model(classes, wide):
    def stage(a, b):
        return [nn.Conv2d(a, b, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
    net = nn.Sequential(*stage(3, wide), *stage(wide, 2 * wide), *stage(2 * wide, 4 * wide),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * wide, classes))
    return net.to(DEV, memory_format=torch.channels_last)


class Trainer:
    def __init__(self, net, callbacks):
        self.net, self.callbacks, self.done = net, callbacks, 0
        self.opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

    def fit(self, stream):
        for images, labels in stream:
            with torch.autocast(DEV, torch.bfloat16):
                self.loss = nn.functional.cross_entropy(self.net(images), labels)
            self.opt.zero_grad()
            self.loss.backward()
            self.opt.step()
            self.loss = self.loss.detach()
            self.done += 1
            for c in self.callbacks:
                c.after_batch(self)
        for c in self.callbacks:
            c.after_run(self)


def glyphs(batch, side, count):
    bank = torch.randn(4, batch, 3, side, side, device=DEV).to(torch.bfloat16)
    labels = torch.randint(96, (4, batch), device=DEV)
    bank = [b.contiguous(memory_format=torch.channels_last) for b in bank]
    for i in range(count):
        yield bank[i % 4], labels[i % 4]


if __name__ == "__main__":
    torch.manual_seed(13)
    readings = concordance(500 if TINY else 120_000)
    Trainer(model(96, 8 if TINY else 64), [Averages()]).fit(
        glyphs(*((8, 16, 6) if TINY else (512, 128, 480))))
    print(len(readings), "folios")
