from dataclasses import dataclass, field
from itertools import chain, repeat
import os

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from slot_auction_lib import Auctions, ClickModel

SMALL = os.environ.get("TINY") == "1"


@dataclass
class TableOptions:
    buckets: int = 20_000 if SMALL else 16_777_216
    size: int = 8 if SMALL else 64
    lr: float = 0.5


@dataclass
class TowerOptions:
    hidden: tuple = (32, 16) if SMALL else (2048, 2048, 1024)
    lr: float = 1e-3


@dataclass
class Options:
    fields: int = 24
    auctions: int = 1024 if SMALL else 2_097_152
    batch: int = 32 if SMALL else 32768
    epochs: int = 2 if SMALL else 40
    log_every: int = 16 if SMALL else 128
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    table: TableOptions = field(default_factory=TableOptions)
    tower: TowerOptions = field(default_factory=TowerOptions)


def optimizers(model, options):
    # the table learns by plain SGD: Adam's moments would treble its memory
    return (
        torch.optim.SGD(model.crosses.parameters(), lr=options.table.lr),
        torch.optim.AdamW(model.tower.parameters(), lr=options.tower.lr, weight_decay=0.0, fused=True),
    )


def learn(model, opts, values, clicked, options):
    with torch.autocast(options.device, dtype=torch.bfloat16):
        score = model(values)
    loss = binary_cross_entropy_with_logits(score.float(), clicked)
    for opt in opts:
        opt.zero_grad(set_to_none=True)
    loss.backward()
    for opt in opts:
        opt.step()
    return loss.detach()


def run(options):
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(13)
    auctions = Auctions(options.auctions, options.fields, options.device, seed=31)
    model = ClickModel(
        options.table.buckets, options.table.size, options.fields, options.tower.hidden, options.device
    )
    opts = optimizers(model, options)
    loss_sum = torch.zeros((), device=options.device)
    days = chain.from_iterable(map(auctions.batches, repeat(options.batch, options.epochs)))
    for number, (values, clicked) in enumerate(days, 1):
        loss_sum += learn(model, opts, values, clicked, options)
        if number % options.log_every == 0:
            print(f"batch {number}: log loss {loss_sum.item() / options.log_every:.5f}", flush=True)
            loss_sum.zero_()


if __name__ == "__main__":
    run(Options())
