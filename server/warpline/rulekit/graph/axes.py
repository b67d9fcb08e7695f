"""Which dimensions of a tensor the dimensions of a view of it are: how a product of rows is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

#: Of each dimension of a view: the dimensions of the tensor that it runs through, those of size 1 left out.
Axes = tuple[tuple[int, ...], ...]


def axes_of(shape: Sequence[int]) -> Axes:
    """The axes of the tensor itself."""
    return tuple((dim,) if size != 1 else () for dim, size in enumerate(shape))


def moved(axes: Axes, name: str, numbers: Sequence[int]) -> Axes | None:
    """The axes after ``permute``, ``transpose`` or ``t``; None after another operator."""
    rank = len(axes)
    if name == "t":
        return axes[::-1]
    if name == "permute" and len(numbers) == rank:
        return tuple(axes[dim % rank] for dim in numbers)
    if name == "transpose" and len(numbers) == 2 and rank > 1:
        order = list(axes)
        first, second = (dim % rank for dim in numbers)
        order[first], order[second] = order[second], order[first]
        return tuple(order)
    return None


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
