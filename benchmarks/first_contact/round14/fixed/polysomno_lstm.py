"""Sleep stages from polysomnography nights with a stacked LSTM; one label per 30 s epoch."""
import argparse
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--nights", type=int, default=24 if TINY else 6400)
    p.add_argument("--epochs-per-night", type=int, default=20 if TINY else 480)
    p.add_argument("--channels", type=int, default=32)
    p.add_argument("--hidden", type=int, default=16 if TINY else 512)
    p.add_argument("--at-once", type=int, default=8 if TINY else 64)
    p.add_argument("--updates", type=int, default=5 if TINY else 300)
    return p.parse_args()


class Sleeper(nn.Module):
    def __init__(self, channels, hidden, stages=5):
        super().__init__()
        self.recall = nn.LSTM(channels, hidden, num_layers=3, batch_first=True)
        self.stage = nn.Linear(hidden, stages)

    def forward(self, night):
        return self.stage(self.recall(night)[0])


def nights(o, dev):
    g = torch.Generator(device=dev).manual_seed(13)
    signal = torch.randn(o.nights, o.epochs_per_night, o.channels, generator=g, device=dev)
    stage = signal[..., :4].cumsum(1).sum(-1).div(6).long().remainder(5)
    return signal, stage


def lots(o, dev):
    """Endless: a new order for every pass."""
    g = torch.Generator(device=dev).manual_seed(14)
    while True:
        yield from torch.randperm(o.nights, generator=g, device=dev).split(o.at_once)


def main():
    o = options()
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(12)
    signal, stage = nights(o, dev)
    model = Sleeper(o.channels, o.hidden).to(dev)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    criterion = nn.CrossEntropyLoss()
    mean = torch.zeros((), device=dev)
    for update, lot in zip(range(o.updates), lots(o, dev)):
        with torch.autocast(dev, dtype=torch.bfloat16):
            loss = criterion(model(signal[lot]).flatten(0, 1), stage[lot].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean.lerp_(loss.detach(), 1 / (update + 1))
    print(f"mean loss {mean.item():.4f} over {o.updates} updates of {o.at_once} nights")


if __name__ == "__main__":
    main()
