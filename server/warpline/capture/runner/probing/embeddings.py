"""Look-ups in a table, with the table's gradient and update: dense, and of the rows that were read."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F

from ....wire.probing import Question
from .pair import Pair
from .tensors import made

#: What updates a table by a sparse gradient where its own optimizer does not.
SPARSE = {"Adam": "SparseAdam", "AdamW": "SparseAdam"}


def embedding(question: Question, device: str) -> Pair:
    """Tensor: the table. Options: the optimizer, how many look-ups a step has, and the rows of each."""
    name, calls, rows = question.options[0], int(question.options[1]), int(question.options[2])
    table = made(question.tensors[0], device)
    asked = [torch.randint(len(table), (rows,), device=device) for _ in range(calls)]
    given = [torch.randn(rows, table.shape[1], device=device) for _ in range(calls)]

    def training(kind: str, sparse: bool) -> Callable[[], Any]:
        weight = table.clone().requires_grad_()
        optimizer = getattr(torch.optim, kind)([weight], lr=1e-3)

        def step() -> Any:
            optimizer.zero_grad()
            torch.autograd.backward([F.embedding(ids, weight, sparse=sparse) for ids in asked], given)
            optimizer.step()
            return weight

        return step

    # Rows that are read twice are summed in another order, and SparseAdam gives other results.
    return Pair(training(name, False), training(SPARSE.get(name, name), True), same=False)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"embedding": embedding}
