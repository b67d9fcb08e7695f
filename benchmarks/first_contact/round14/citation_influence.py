"""Personalised influence in a citation graph: random walks with restarts from many groups of papers at once."""
import os
from typing import Iterator, NamedTuple

import torch

TINY = os.environ.get("TINY") == "1"
torch.set_float32_matmul_precision("high")


class Plan(NamedTuple):
    papers: int = 256 if TINY else 8192
    groups: int = 8 if TINY else 64
    queries: int = 3 if TINY else 1700
    restart: float = 0.15
    sweeps: int = 96
    tolerance: float = 1e-6


def citation_matrix(plan: Plan, device: str) -> torch.Tensor:
    """Two fields that rarely cite each other; columns sum to one."""
    half = plan.papers // 2
    weight = torch.rand(plan.papers, plan.papers, device=device).pow_(8)
    weight[:half, half:] *= 0.003
    weight[half:, :half] *= 0.003
    return weight.div_(weight.sum(0, keepdim=True))


def queries(plan: Plan, device: str) -> Iterator[torch.Tensor]:
    """Each column spreads a weight of one over the papers of its group."""
    for _ in range(plan.queries):
        seeds = torch.rand(plan.papers, plan.groups, device=device).pow_(200)
        yield seeds.div_(seeds.sum(0, keepdim=True))


@torch.no_grad()
def influence(matrix: torch.Tensor, seeds: torch.Tensor, plan: Plan) -> torch.Tensor:
    restart = seeds * plan.restart
    rank, change, sweep = seeds, None, 0
    while change is None or (sweep < plan.sweeps and change > plan.tolerance):  # flaw: sync-in-step
        fresh = torch.addmm(restart, matrix, rank, alpha=1 - plan.restart)
        change = (fresh - rank).abs_().sum(0).amax()
        rank = fresh
        sweep += 1
    return rank


def main() -> None:
    plan = Plan()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    matrix = citation_matrix(plan, device)
    top = torch.zeros((), device=device)
    for seeds in queries(plan, device):
        top += influence(matrix, seeds, plan).amax(0).mean()
    print(f"mean of the most influential: {top.item() / plan.queries:.5f}")


main()
