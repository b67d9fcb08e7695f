"""Appraises reliquaries from a ledger of auction records that is kept in memory."""
import gc
import os
import random

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
RECORDS, STEPS, BATCH = (2_000, 5, 16) if TINY else (45_000, 100, 384)


class Lot:
    def __init__(self, rng):
        self.marks = {"year": rng.randint(900, 1800), "weight": rng.random(), "gilt": rng.random() < 0.3}
        self.gems = [rng.random() for _ in range(5)]
        self.price = 0.6 * self.marks["weight"] + sum(self.gems) * 0.2 + 0.4 * self.marks["gilt"]

    def features(self):
        return [self.marks["year"] / 1800, self.marks["weight"], float(self.marks["gilt"]), *self.gems]


class Appraiser(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
        )

    def forward(self, lots):
        return self.layers(lots).squeeze(1)


def main():
    rng = random.Random(3)
    torch.manual_seed(3)
    ledger = [Lot(rng) for _ in range(RECORDS)]
    net = Appraiser()
    gc.collect()
    gc.freeze()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        drawn = rng.sample(ledger, BATCH)
        lots = torch.tensor([lot.features() for lot in drawn])
        price = torch.tensor([lot.price for lot in drawn])
        loss = nn.functional.mse_loss(net(lots), price)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(step, f"{loss.item():.4f}")
    print("appraised", f"{loss.item():.4f}")


main()
