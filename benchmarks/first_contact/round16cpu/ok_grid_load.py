"""Hourly load of substations: an LSTM reads three days and tells the next."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = "TINY" in os.environ
STATIONS, HOURS, STEPS = (4, 24, 6) if TINY else (96, 96, 130)


class LoadModel(nn.Module):
    def __init__(self, inputs=6, width=128):
        super().__init__()
        self.core = nn.LSTM(inputs, width, batch_first=True)
        self.head = nn.Linear(width, 24)

    def forward(self, history):
        _, (state, _) = self.core(history)
        return self.head(state[-1])


def grid():
    g = torch.Generator().manual_seed(3)
    hour = torch.arange(HOURS + 24) * (6.2832 / 24)
    for _ in range(STEPS):
        phase = 6.2832 * torch.rand(STATIONS, 1, generator=g)
        load = torch.sin(hour + phase)
        extra = torch.randn(STATIONS, HOURS, 5, generator=g)
        yield torch.cat([load[:, :HOURS, None], extra], -1), load[:, HOURS:]


def main():
    torch.manual_seed(0)
    model = LoadModel()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    losses = []
    for history, ahead in grid():
        loss = F.smooth_l1_loss(model(history), ahead, beta=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    print(f"first {losses[0].item():.4f}, last ten {losses[-10:].mean().item():.4f}")


if __name__ == "__main__":
    main()
