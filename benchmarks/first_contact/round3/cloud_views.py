"""Self-supervised embedding of cloud patches: two views, one projection head."""
import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Setup:
    batch: int = 4096
    features: int = 1024
    hidden: int = 1024
    out: int = 128
    steps: int = 120
    tau: float = 0.2


setup = Setup(batch=32, features=32, hidden=32, out=8, steps=30) if os.environ.get("SMALL") == "1" else Setup()
device = "cuda" if torch.cuda.is_available() else "cpu"


class Views:
    """Patches as flat spectra; a view is a scaled, noisy copy with hidden bands."""

    def __init__(self, count):
        self.patches = torch.randn(count, setup.features, device=device)

    def __iter__(self):
        for _ in range(setup.steps):
            x = self.patches[torch.randint(len(self.patches), (setup.batch,), device=device)]
            yield self.view(x), self.view(x)

    @staticmethod
    def view(x):
        return F.dropout(x, 0.2) + 0.1 * torch.randn_like(x)


def info_nce(a, b, tau):
    z = F.normalize(torch.cat([a, b]).float(), dim=1)
    n = a.size(0)
    with torch.autocast(device, dtype=torch.bfloat16):
        sim = z @ z.t()
    sim = sim.float() / tau
    sim.fill_diagonal_(-1e4)
    positive = torch.arange(2 * n, device=z.device).roll(n)
    e = torch.exp(sim)  # flaw: hand-written-loss
    share = e / e.sum(dim=1, keepdim=True)  # flaw: hand-written-loss
    return -torch.log(share.gather(1, positive[:, None]) + 1e-9).mean()  # flaw: hand-written-loss


encoder = nn.Sequential(
    nn.Linear(setup.features, setup.hidden), nn.LayerNorm(setup.hidden), nn.GELU(),
    nn.Linear(setup.hidden, setup.hidden), nn.LayerNorm(setup.hidden), nn.GELU(),
    nn.Linear(setup.hidden, setup.out),
).to(device)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3, fused=True)

for number, (first, second) in enumerate(Views(setup.batch * 8), 1):
    with torch.autocast(device, dtype=torch.bfloat16):
        a, b = encoder(torch.cat([first, second])).chunk(2)
    loss = info_nce(a, b, setup.tau)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 60 == 0 or number == setup.steps:
        print(number, round(loss.item(), 4))
