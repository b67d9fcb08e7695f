"""Scores candidates for many users with a wide network in bfloat16 (inference only)."""
from __future__ import annotations
import os
from typing import Iterator, NamedTuple
import torch
from torch import Tensor, nn


class Sizes(NamedTuple):
    users: int
    features: int
    hidden: int
    items: int
    keep: int
    rounds: int


SIZES = Sizes(8, 16, 32, 64, 4, 3) if os.environ.get("TINY") == "1" else Sizes(16384, 1024, 4096, 16384, 32, 900)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make(s: Sizes) -> nn.Module:
    return nn.Sequential(
        nn.Linear(s.features, s.hidden), nn.ReLU(inplace=True),
        nn.Linear(s.hidden, s.hidden), nn.ReLU(inplace=True),
        nn.Linear(s.hidden, s.hidden), nn.ReLU(inplace=True),
        nn.Linear(s.hidden, s.items),
    )


def requests(s: Sizes) -> Iterator[Tensor]:
    for _ in range(s.rounds):
        yield torch.randn(s.users, s.features, device=DEVICE, dtype=torch.bfloat16)


@torch.inference_mode()
def serve(s: Sizes) -> None:
    torch.manual_seed(0)
    net = make(s).to(DEVICE, torch.bfloat16).eval()
    shown = torch.zeros(s.items, device=DEVICE)
    one = torch.ones((), device=DEVICE)
    for users in requests(s):
        best = net(users).topk(s.keep, dim=1, sorted=False).indices
        shown.index_put_((best.flatten(),), one, accumulate=True)
    print("items shown", int((shown > 0).sum()), "most", int(shown.max()))


serve(SIZES)
