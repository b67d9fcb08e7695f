"""Scores a nightly dump of freight claims for fraud with a trained wide network (offline inference)."""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

import torch
from torch import nn


class ClaimTable:
    """Columns of a claim: amounts, codes that are one-hot, and the age of the account."""

    def __init__(self, claims: int, amounts: int, codes: int, seed: int):
        gen = torch.Generator().manual_seed(seed)
        self.amounts = torch.randn(claims, amounts, generator=gen).exp_()
        self.code = torch.randint(codes, (claims,), generator=gen)
        self.codes = codes

    def __len__(self) -> int:
        return len(self.code)

    def rows(self, start: int, stop: int) -> torch.Tensor:
        hot = nn.functional.one_hot(self.code[start:stop], self.codes)
        return torch.cat([self.amounts[start:stop].log1p(), hot], dim=1)


class FraudNet(nn.Module):
    def __init__(self, inputs: int, width: int, depth: int):
        super().__init__()
        sizes = [inputs] + [width] * depth
        self.hidden = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:])])
        self.risk = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return torch.sigmoid(self.risk(x)).squeeze(1)


def chunks(table: ClaimTable, size: int) -> Iterator[tuple[int, torch.Tensor]]:
    for start in range(0, len(table), size):
        yield start, table.rows(start, min(start + size, len(table)))


@torch.inference_mode()
def score_dump(model: nn.Module, table: ClaimTable, size: int) -> torch.Tensor:
    risks = torch.empty(len(table))
    for start, claims in chunks(table, size):
        risks[start : start + len(claims)] = model(claims)
    return risks


def report(risks: torch.Tensor, destination: PurePosixPath) -> None:
    bands = Counter((risks * 200).long().clamp(max=199).tolist())
    print(f"would write {len(risks)} scores to {destination}")
    for band, count in bands.most_common(3):
        print(f"risk {band / 200:.3f}: {count} claims")
    print(f"mean risk {risks.mean().item():.6f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", type=int, default=9_600)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--width", type=int, default=1536)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--out", type=PurePosixPath, default=PurePosixPath("scores/night.parquet"))
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(66)
    table = ClaimTable(args.claims, amounts=40, codes=88, seed=67)
    model = FraudNet(128, args.width, args.depth).eval()
    report(score_dump(model, table, args.batch_size), args.out)


if __name__ == "__main__":
    main()
