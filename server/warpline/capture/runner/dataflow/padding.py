"""The share of padding in the indices of embeddings, counted after the step."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ....wire.dataflow import TENSOR, Padding

#: Bounds, chosen and not fitted. Tables of fewer rows tell segments or flags apart, not words.
FEWEST_ROWS = 32
#: Sequences shorter than this are not worth cutting.
SHORTEST = 8
#: Look-ups that are kept until the step is over.
MOST = 4
#: The value may be elsewhere too (GPT-2 pads with its end of text), up to this share of the padding.
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
        """What of them is padding; waits for the device."""
        found = []
        for indices, value, site in self._kept:
            counted = counted_in(indices)
            if counted is not None:
                found.append(Padding(value, site, indices.shape[0], indices.shape[1], *counted))
        self._kept.clear()
        return tuple(found)


def counted_in(indices: Any) -> Optional[Tuple[int, int]]:
    """``(padded elements, columns that are padding in every row)`` of indices of rows times columns; None
    where no value fills rows up at one end."""
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
