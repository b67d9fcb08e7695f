"""Tensors that get longer with each call, by their recorded sizes."""

from __future__ import annotations

import math
from itertools import pairwise

from warpline.model.profile import LineCost, Op

#: Lengths one after the other from which on it is not an accident.
LEAST_LENGTHS = 3
#: What an operator's count may be off from one.
_ONCE = 0.01


def grows(joins: list[Op]) -> bool:
    """Whether one call after the other joins the same piece to a tensor that got longer by just that.

    A list of tensors is recorded as the sizes of all of them in a row.
    """
    lengths: dict[tuple[int, ...], set[int]] = {}
    for op in joins:
        sizes = op.shapes[0] if op.shapes else ()
        half = len(sizes) // 2
        first, second = sizes[:half], sizes[half:]
        apart = [at for at in range(half) if first[at] != second[at]]
        if len(sizes) % 2 or len(apart) != 1:
            continue
        long, piece = max(first[apart[0]], second[apart[0]]), min(first[apart[0]], second[apart[0]])
        rest = (*first[: apart[0]], -1, *first[apart[0] + 1 :])
        lengths.setdefault((*rest, piece), set()).add(long)
    for key, seen in lengths.items():
        # Of a line's many shapes the costliest are known: lengths may be missing in between.
        steps = [after - before for before, after in pairwise(sorted(seen))]
        if steps.count(key[-1]) >= LEAST_LENGTHS - 1 and not any(one % max(1, key[-1]) for one in steps):
            return True
    return False


def longer_each_step(cost: LineCost, steps: int) -> int | None:
    """The size that a tensor of the line had in the last of the captured ``steps``, where it is longer by the
    same amount in each of them; None where there is no such tensor."""
    sizes: dict[tuple[object, ...], set[int]] = {}
    for op in cost.ops:
        shape = op.shapes[0] if op.shapes else ()
        if op.phase != "forward" or not shape or abs(op.count * steps - 1) > _ONCE:
            continue  # of each size there is one, in one step
        for size in set(shape):  # other tensors of the operator may be as long
            rest = tuple(tuple(-1 if one == size else one for one in other) for other in op.shapes)
            sizes.setdefault((op.name, rest), set()).add(size)
    for found in sizes.values():  # `aten::var` with `unbiased` calls itself with a correction
        apart = {after - before for before, after in pairwise(sorted(found))}
        if len(found) == steps >= LEAST_LENGTHS and len(apart) == 1:
            return max(found)
    return None


def new_share(joins: list[Op]) -> float:
    """Share of what is copied that is the piece, where each call joins a piece to a longer tensor; 1 where
    that is not known."""
    shares = []
    for op in joins:
        sizes = op.shapes[0] if op.shapes else ()
        half = len(sizes) // 2
        first, second = math.prod(sizes[:half]), math.prod(sizes[half:])
        if half and len(sizes) % 2 == 0 and first + second > 0:
            shares.append((min(first, second) / (first + second), op.count))
    whole = sum(count for _, count in shares)
    return sum(share * count for share, count in shares) / whole if whole else 1.0
