"""Tensors that get longer with each call, by the sizes that were recorded."""

from __future__ import annotations

from itertools import pairwise

from warpline.model.profile import Op

#: Lengths one after the other from which on it is no accident.
LEAST_LENGTHS = 3


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
        steps = sorted(seen)
        if len(steps) >= LEAST_LENGTHS and all(
            after - before == key[-1] for before, after in pairwise(steps)
        ):
            return True
    return False
