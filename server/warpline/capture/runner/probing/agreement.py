"""Whether two computations gave equal results, within the precision of their dtype."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

import torch

#: ``(relative, absolute)``. Twice what ``torch.testing.assert_close`` allows for one operator, as sums are
#: taken in another order over several; the relative one is of the largest number of the tensor, since small
#: numbers beside large ones are differences of those.
TOLERANCES = {
    torch.float64: (2e-7, 2e-7),
    torch.float32: (2.6e-5, 2e-5),
    torch.float16: (2e-2, 2e-3),
    torch.bfloat16: (3.2e-2, 2e-3),
}


def difference(one: Any, other: Any, coarsest: Optional[torch.dtype] = None) -> float:
    """The largest difference of two results (tensors, or tuples of them) in units of what is tolerated.

    ``coarsest``: a dtype that the replacement computes in, where that is not the results' own. Infinite where
    shapes differ or only one of two numbers is finite.
    """
    worst = 0.0
    pairs = list(zip(_tensors(one), _tensors(other)))
    for left, right in pairs:
        if left.shape != right.shape:
            return float("inf")
        kinds = [kind for kind in (left.dtype, right.dtype, coarsest) if kind in TOLERANCES]
        relative, absolute = max((TOLERANCES[kind] for kind in kinds), default=(0.0, 0.0))
        left, right = (_real(found).double() for found in (left, right))
        if not left.numel():
            continue
        if not torch.equal(torch.isfinite(left), torch.isfinite(right)):
            return float("inf")
        left, right = torch.nan_to_num(left), torch.nan_to_num(right)
        allowed = absolute + relative * float(left.abs().max())
        apart = float((left - right).abs().max())
        worst = max(worst, apart / allowed if allowed else float(apart > 0) * 2)
    return worst


def _real(tensor: Any) -> Any:
    """``tensor`` as real numbers: a complex one as its two parts."""
    tensor = tensor.detach()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _tensors(result: Any) -> Iterable[Any]:
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for one in result:
            for tensor in _tensors(one):
                yield tensor
