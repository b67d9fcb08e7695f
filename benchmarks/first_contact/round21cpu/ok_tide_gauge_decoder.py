"""Tide forecast, sequence to sequence, with scheduled sampling: the decoder often reads its own last guess."""
import math

import torch
from torch import nn

HISTORY, AHEAD, GAUGES = 48, 24, 8
WIDTH, BATCH, STEPS, EVERY = 128, 64, 700, 70


def tides(hours, generator):
    """Main lunar and solar constituents with an own phase at each gauge, plus surges."""
    t = torch.arange(hours).float()[:, None]
    periods = torch.tensor([12.42, 12.0, 12.66, 23.93, 25.82])
    heights = torch.tensor([1.0, 0.4, 0.2, 0.15, 0.1])
    phases = torch.rand(GAUGES, 5, generator=generator) * 2 * math.pi
    level = (heights * torch.cos(2 * math.pi * t[..., None] / periods + phases)).sum(-1)
    gusts = torch.randn(hours, generator=generator)
    kernel = torch.exp(-torch.arange(36) / 9.0)
    surge = nn.functional.conv1d(gusts[None, None], kernel.flip(0)[None, None], padding=35)[0, 0, :hours]
    return level + 0.05 * surge[:, None] + 0.02 * torch.randn(hours, GAUGES, generator=generator)


class Forecaster(nn.Module):
    def __init__(self, gauges=GAUGES, width=WIDTH):
        super().__init__()
        self.encoder = nn.GRU(gauges, width, batch_first=True)
        self.cell = nn.GRUCell(gauges, width)
        self.change = nn.Linear(width, gauges)

    def forward(self, past, future=None, trust=0.0):
        """trust: how often the decoder is shown the true level instead of its own guess."""
        _, state = self.encoder(past)
        state, level = state[0], past[:, -1]
        path = []
        if future is not None:
            shown = torch.rand(AHEAD, len(past), 1) < trust
        for hour in range(AHEAD):
            state = self.cell(level, state)
            level = level + self.change(state)
            path.append(level)
            if future is not None:
                level = torch.where(shown[hour], future[:, hour], level)
        return torch.stack(path, dim=1)


def main():
    torch.manual_seed(1872)
    g = torch.Generator().manual_seed(1872)
    level = tides(24 * 365, g)
    windows = level.unfold(0, HISTORY + AHEAD, 1).transpose(1, 2)
    cut = int(0.9 * len(windows))
    test = windows[cut :: 16]

    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    total = torch.zeros(())
    for step in range(STEPS):
        window = windows[torch.randint(cut, (BATCH,), generator=g)]
        past, future = window[:, :HISTORY], window[:, HISTORY:]
        loss = nn.functional.smooth_l1_loss(model(past, future, trust=1 - step / STEPS), future)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.detach()
        if (step + 1) % EVERY == 0:
            print(f"step {step + 1}: loss {total.item() / EVERY:.5f}")
            total.zero_()

    with torch.inference_mode():
        error = (model(test[:, :HISTORY]) - test[:, HISTORY:]).abs().mean()
    print("mean error of the free forecast", round(error.item(), 4))


if __name__ == "__main__":
    main()
