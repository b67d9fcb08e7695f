"""Water table of peat bogs from two years of satellite and weather series."""
import logging
import sys
from typing import NamedTuple

import torch
from torch import Tensor, nn

logger = logging.getLogger("peat")


class Options(NamedTuple):
    sites: int = 4096
    months: int = 24
    bands: int = 10
    width: int = 64
    batch: int = 64
    micro_batch: int = 4  # flaw: small-batch
    updates: int = 260
    lr: float = 2e-3
    clip: float = 1.0
    seed: int = 23


def simulate(o: Options) -> tuple[Tensor, Tensor]:
    gen = torch.Generator().manual_seed(o.seed)
    season = torch.sin(torch.arange(o.months) * (2 * torch.pi / 12))
    wet = torch.randn(o.sites, 1, generator=gen) + 0.3 * torch.randn(o.sites, o.months, generator=gen).cumsum(1)
    look = torch.randn(2, o.bands, generator=gen)
    bands = wet[..., None] * look[0] + season[:, None] * look[1]
    bands = bands + 0.3 * torch.randn(bands.shape, generator=gen)
    level = torch.tanh(wet[:, -6:].mean(1)) - 0.2 * wet[:, :12].mean(1)
    return bands, level


class WaterTable(nn.Module):
    def __init__(self, o: Options):
        super().__init__()
        self.reader = nn.GRU(o.bands, o.width, batch_first=True)
        self.level = nn.Sequential(nn.Linear(o.width, o.width), nn.ReLU(), nn.Linear(o.width, 1))

    def forward(self, bands: Tensor) -> Tensor:
        _, last = self.reader(bands)
        return self.level(last[-1]).squeeze(1)


def accumulate(model: nn.Module, bands: Tensor, level: Tensor, micro_batch: int) -> Tensor:
    """Adds up the gradients of the mean error over all rows, a few rows at a time."""
    total = torch.zeros(())
    for x, y in zip(bands.split(micro_batch), level.split(micro_batch)):
        loss = nn.functional.mse_loss(model(x), y) * (len(x) / len(bands))
        loss.backward()
        total += loss.detach()
    return total


def train(o: Options) -> None:
    torch.manual_seed(o.seed)
    bands, level = simulate(o)
    model = WaterTable(o)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=o.lr, fused=True)
    gen = torch.Generator().manual_seed(o.seed + 1)
    for update in range(1, o.updates + 1):
        rows = torch.randint(o.sites, (o.batch,), generator=gen)
        optimizer.zero_grad()
        loss = accumulate(model, bands[rows], level[rows], o.micro_batch)
        nn.utils.clip_grad_norm_(parameters, o.clip)
        optimizer.step()
        if update % 40 == 0:
            logger.info("update %4d loss %.5f", update, loss.item())


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s %(message)s")
    train(Options())
