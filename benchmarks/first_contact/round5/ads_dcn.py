"""Deep & cross network for click prediction; all categorical fields share one bagless table."""
import os
from dataclasses import dataclass, replace
from typing import Iterator, Tuple

import torch
from torch import Tensor, nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Settings:
    fields: int = 26
    rows_per_field: int = 50_000
    dense: int = 16
    dim: int = 32
    cross: int = 3
    hidden: int = 1024
    batch: int = 65_536
    steps: int = 120


class DCN(nn.Module):
    def __init__(self, s: Settings, device: str) -> None:
        super().__init__()
        self.table = nn.Embedding(s.fields * s.rows_per_field, s.dim, sparse=True, device=device)
        self.register_buffer("offset", torch.arange(s.fields, device=device) * s.rows_per_field)
        width = s.fields * s.dim + s.dense
        self.cross = nn.ModuleList(nn.Linear(width, width, device=device) for _ in range(s.cross))
        self.deep = nn.Sequential(
            nn.Linear(width, s.hidden, device=device), nn.ReLU(inplace=True),
            nn.Linear(s.hidden, s.hidden, device=device), nn.ReLU(inplace=True),
            nn.Linear(s.hidden, 1, device=device),
        )

    def forward(self, cats: Tensor, nums: Tensor) -> Tensor:
        x0 = torch.cat((self.table(cats + self.offset).flatten(1), nums), dim=1)
        x = x0
        for layer in self.cross:
            x = torch.addcmul(x, x0, layer(x).to(x0.dtype))
        return self.deep(x).squeeze(1)


def impressions(s: Settings, device: str) -> Iterator[Tuple[Tensor, Tensor, Tensor]]:
    shards = 4
    cats = torch.randint(s.rows_per_field, (shards, s.batch, s.fields), device=device)
    nums = torch.randn(shards, s.batch, s.dense, device=device)
    click = (nums[..., 0] + 0.5 * torch.randn(shards, s.batch, device=device) > 1).float()
    for n in range(s.steps):
        yield cats[n % shards], nums[n % shards], click[n % shards]


def train(s: Settings) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = DCN(s, device)
    dense = [p for name, p in model.named_parameters() if name != "table.weight"]
    optimizers = (torch.optim.SGD([model.table.weight], lr=0.1), torch.optim.Adam(dense, lr=1e-3, fused=True))
    mean = torch.zeros((), device=device)
    for n, (cats, nums, click) in enumerate(impressions(s, device), start=1):
        with torch.autocast(device, dtype=torch.bfloat16):
            logit = model(cats, nums)
        loss = F.binary_cross_entropy_with_logits(logit.float(), click)
        loss.backward()
        for opt in optimizers:
            opt.step()
            opt.zero_grad()
        mean.lerp_(loss.detach(), 0.05)
        if n % 40 == 0:
            print(f"{n} batches, smoothed log-loss {mean.item():.4f}")


if __name__ == "__main__":
    base = Settings()
    if os.environ.get("SMALL") == "1":
        base = replace(base, fields=4, rows_per_field=50, dense=4, dim=8, cross=1, hidden=16, batch=32, steps=30)
    train(base)
