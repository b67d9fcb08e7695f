"""Counts the padding in the indices of embeddings, after the step."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

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


def counted_in(indices: Any) -> Optional[Tuple[int, int]]:
    """``(padded elements, columns that are padding in every row)`` of a 2-d tensor of indices; None if no
    value fills up rows at one end."""
    best = None
    for rows in (indices.flip(1), indices):
        value = rows[:, 0].mode().values
        same = rows == value
        runs = same.long().cumprod(1).sum(1)
        padded, everywhere = int(runs.sum()), int(same.sum())
        if padded == rows.numel() or everywhere - padded > ELSEWHERE * padded:
            continue
        # One in each row begins or ends it.
        if int(runs.max()) > 1 and (best is None or padded > best[0]):
            best = (padded, int(runs.min()))
    return best
