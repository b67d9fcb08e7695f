# corpus: run, may launch-bound small-batch gc-pause-in-step unfused-elementwise hand-written-loss
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def dense(*widths):
    layers = []
    for width, following in zip(widths, widths[1:]):
        layers += [nn.Linear(width, following), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class Forger:
    def __init__(self):
        self.painter = dense(32, 512, 512, 512, 256)
        self.expert = dense(256, 256, 256, 1)
        self.paints = torch.optim.SGD(self.painter.parameters(), lr=0.01)
        self.judges = torch.optim.SGD(self.expert.parameters(), lr=0.01)

    def paint(self, count):
        return torch.tanh(self.painter(torch.randn(count, 32)))

    def judge(self, originals):
        real = F.softplus(-self.expert(originals)).mean()
        loss = real + F.softplus(self.expert(self.paint(len(originals)))).mean()  #> found
        self.judges.zero_grad()
        loss.backward()
        self.judges.step()
        return loss

    def forge(self, count):
        self.expert.requires_grad_(False)
        loss = F.softplus(-self.expert(self.paint(count))).mean()
        self.paints.zero_grad()
        loss.backward()
        self.paints.step()
        self.expert.requires_grad_(True)
        return loss


forger = Forger()
originals = torch.rand(64, 256)
for step in range(1500):
    judged = forger.judge(originals)
    forged = forger.forge(64)
print(f"{judged.item():.6f} {forged.item():.6f}")
