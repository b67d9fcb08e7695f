"""Gradients of several small batches before a step, and an average of the weights kept by hand."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv1d(8, 32, 5), nn.ELU(), nn.Conv1d(32, 32, 5), nn.ELU(), nn.Flatten(), nn.Linear(32 * 120, 4)
)
average = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
signals = torch.randn(16, 8, 128)
answers = torch.randint(0, 4, (16,))


def smooth(values, width=5):
    out = []
    for at in range(len(values)):
        near = values[max(0, at - width) : at + width]
        out.append(sum(near) / len(near))
    return out


def spectrum(x):
    whole = torch.fft.rfft(x, dim=-1)
    return torch.log1p(whole.abs())


def ema(source, target, keep=0.99):
    with torch.no_grad():
        for old, new in zip(target.parameters(), source.parameters(), strict=True):
            old.mul_(keep).add_(new, alpha=1 - keep)


losses = [0.0] * 3000  # as long as it stays, so that all steps are alike
while True:
    optimizer.zero_grad()
    for _ in range(4):
        x = signals + 0.01 * torch.randn_like(signals)
        power = spectrum(x)
        loss = nn.functional.cross_entropy(net(x), answers) / 4 + 0 * power.mean()
        loss.backward()
        losses.append(loss.item())
    optimizer.step()
    ema(net, average)
    losses = losses[-3000:]
    curve = smooth(losses)
