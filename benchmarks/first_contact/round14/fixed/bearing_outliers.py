"""Outlier scores of vibration snippets: mean cosine gap to the nearest healthy ones."""
import os
from typing import Iterator

import torch
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_float32_matmul_precision("high")


class HealthyBank:
    def __init__(self, rows: torch.Tensor, depth: int):
        self.rows = F.normalize(rows, dim=1)
        self.depth = depth

    def gaps(self, snippets):
        return 1 - F.normalize(snippets, dim=1) @ self.rows.T

    def nearest(self, gaps):
        return gaps.topk(self.depth, dim=1, largest=False).values

    def score(self, snippets):
        return self.nearest(self.gaps(snippets)).mean(1)


def stream(number: int, batch: int, width: int) -> Iterator[torch.Tensor]:
    dice = torch.Generator(device).manual_seed(41)
    for i in range(number):
        snippets = torch.randn(batch, width, generator=dice, device=device)
        snippets[:: 16] += 2.0
        yield snippets


@torch.no_grad()
def survey(healthy: int, batch: int, width: int, number: int, depth: int):
    torch.manual_seed(40)
    bank = HealthyBank(torch.randn(healthy, width, device=device), depth)
    alarms = torch.zeros((), dtype=torch.long, device=device)
    mean = torch.zeros((), device=device)
    for snippets in stream(number, batch, width):
        score = bank.score(snippets)
        alarms += (score > score.mean() + 2 * score.std()).sum()
        mean += score.mean()
    print(f"{alarms.item()} alarms, mean gap {mean.item() / number:.5f}")


if __name__ == "__main__":
    if os.environ.get("TINY") == "1":
        survey(healthy=200, batch=32, width=16, number=5, depth=7)
    else:
        survey(healthy=100_000, batch=1024, width=512, number=400, depth=24)
