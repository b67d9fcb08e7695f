"""Which dimensions of a tensor the dimensions of a view of it are: how a product of rows is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Order = tuple[int, ...]  # of dimensions, as for ``permute``
#: Of each dimension of a view: the dimensions of the tensor that it runs through, those of size 1 left out.
Axes = tuple[tuple[int, ...], ...]


def axes_of(shape: Sequence[int]) -> Axes:
    """The axes of the tensor itself."""
    return tuple((dim,) if size != 1 else () for dim, size in enumerate(shape))


def order_of(name: str, given: Sequence[Any], rank: int) -> Order | None:
    """The order that an operator puts ``rank`` dimensions into, as for ``permute``; None for another
    operator. ``given``: its arguments behind the tensor."""
    if name in ("t", "numpy_T"):
        return tuple(reversed(range(rank)))
    dims = [one if isinstance(one, tuple) else (one,) for one in given]
    if not rank or not all(isinstance(dim, int) for some in dims for dim in some):
        return None
    if name == "permute":
        order = tuple(dim % rank for some in dims for dim in some)
        return order if len(order) == rank else None
    if name == "mT":
        dims = [(-1, -2), (-2, -1)]
    elif name in ("transpose", "swapaxes", "swapdims"):
        dims = [(*dims[0], *dims[1]), (*dims[1], *dims[0])] if len(dims) == 2 else []
    elif name not in ("movedim", "moveaxis"):
        return None
    if len(dims) != 2 or (name == "mT" and rank < 2):
        return None
    taken, places = ([dim % rank for dim in some] for some in dims)
    rest = (dim for dim in range(rank) if dim not in taken)
    at = dict(zip(places, taken, strict=True))
    return tuple(at[place] if place in at else next(rest) for place in range(rank))


def regrouped(axes: Axes, shape: Sequence[int], size: Callable[[int], int]) -> Axes | None:
    """The axes after a view as ``shape``; None where it cuts a dimension in two, or repeats one."""
    rest = [dim for group in axes for dim in group]
    found = []
    for wanted in shape:
        group: list[int] = []
        while math.prod(map(size, group)) < wanted and rest:
            group.append(rest.pop(0))
        if math.prod(map(size, group)) != wanted:
            return None
        found.append(tuple(group))
    return None if rest else tuple(found)


def summed(first: Axes, second: Axes) -> tuple[int, ...] | None:
    """The dimensions that a product of two views of tensors of one shape sums over, where it takes each row
    by the row of the same place; else None. The product may be of a batch, of matrices or of vectors."""
    if len(first) == len(second) == 1:
        first, second = ((), *first), (*second, ())
    if len(first) == len(second) == 2:
        first, second = ((), *first), ((), *second)
    if len(first) != 3 or len(second) != 3 or first[1] or second[2]:
        return None
    return first[2] if first[0] == second[0] and first[2] == second[1] and first[2] else None
