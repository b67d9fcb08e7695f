"""Counts the padding in the indices of embeddings, after the step."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

from ....wire.dataflow import TENSOR, Padding

#: Bounds; chosen, not fitted. Tables with fewer rows hold segments or flags, not words.
FEWEST_ROWS = 32
#: Sequences shorter than this are not worth cutting.
SHORTEST = 8
#: Largest number of look-ups kept until the end of the step.
MOST = 4
#: The padding value may also occur elsewhere (GPT-2 pads with end-of-text), up to this share of the padding.
ELSEWHERE = 0.1


class LookedUp:
    """Indices of the step's look-ups. They are read when it is over, since reading waits for the device."""

    def __init__(self) -> None:
        self._kept: List[Tuple[Any, int, int]] = []  # indices, their value's number, the look-up's site

    def add(self, arguments: Tuple[Any, ...], given: List[Any], site: int) -> None:
        """Note a call of ``aten::embedding(table, indices)``; ``given``: its arguments as recorded."""
        table, indices = arguments[:2]
        value = int(given[1][len(TENSOR) :])
        if (
            len(self._kept) < MOST
            and indices.dim() == 2
            and indices.shape[0] > 1
            and indices.shape[1] >= SHORTEST
            and table.shape[0] >= FEWEST_ROWS
            and all(known != value for _, known, _ in self._kept)
        ):
            self._kept.append((indices.detach(), value, site))

    def padding(self) -> Tuple[Padding, ...]:
        """The padding of each look-up. Waits for the device."""
        found = []
        for indices, value, site in self._kept:
            counted = counted_in(indices)
            if counted is not None:
                found.append(Padding(value, site, indices.shape[0], indices.shape[1], *counted))
        self._kept.clear()
        return tuple(found)


class Runs(NamedTuple):
    padded: int  # elements
    shared: int  # columns that are padding in every row
    rows_differ: bool


def counted_in(indices: Any) -> Optional[Tuple[int, int]]:
    """``(padded elements, columns that are padding in every row)`` of a 2-d tensor of indices; None if no
    value fills up rows at one end."""
    ends = [runs_at_end(rows == rows[:, -1].mode().values) for rows in (indices, indices.flip(1))]
    best = max((one for one in ends if one is not None), default=None)
    return None if best is None else best[:2]


def runs_at_end(flags: Any) -> Optional[Runs]:
    """The flags that are set at the end of each row of a 2-d tensor without a gap; None if these are all, or
    many are elsewhere, or one in each row (which ends it)."""
    runs = flags.flip(1).long().cumprod(1).sum(1)
    padded, everywhere = int(runs.sum()), int(flags.sum())
    if padded == flags.numel() or everywhere - padded > ELSEWHERE * padded or int(runs.max()) < 2:
        return None
    return Runs(padded, int(runs.min()), bool((runs != runs[0]).any()))
