"""Counts the padding in the indices of embeddings and in what recurrent layers read, after the step."""

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
    """Indices of the step's look-ups, and series. They are read when it is over, since reading waits for the
    device."""

    def __init__(self) -> None:
        #: Indices or series, the number of their value, and the site of what reads them.
        self._kept: List[Tuple[Any, int, int]] = []

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

    def add_series(self, series: Any, value: int, site: int) -> None:
        """Keep the input of a recurrent layer, (rows, columns, features); its padding is counted later."""
        long_enough = series.dim() == 3 and series.shape[0] > 1 and series.shape[1] >= SHORTEST
        if len(self._kept) < MOST and long_enough and all(known != value for _, known, _ in self._kept):
            self._kept.append((series.detach(), value, site))

    def padding(self) -> Tuple[Padding, ...]:
        """The padding that each of them has. Waits for the device."""
        found = []
        for kept, value, site in self._kept:
            counted, series = _counted(kept), kept.dim() == 3
            # Series that all end alike may have places for what is to be predicted there.
            if counted is not None and (counted.rows_differ or not series):
                rows, columns = kept.shape[:2]
                runs = (counted.padded, counted.shared)
                found.append(
                    Padding(value, site, rows, columns, *runs, series=series, leading=counted.leading)
                )
        self._kept.clear()
        return tuple(found)


class Runs(NamedTuple):
    padded: int  # elements
    shared: int  # columns that are padding in every row
    rows_differ: bool
    leading: bool = False


def counted_in(indices: Any) -> Optional[Tuple[int, int]]:
    """``(padded elements, columns that are padding in every row)`` of a 2-d tensor of indices; None if no
    value fills up rows at one end."""
    best = _counted(indices)
    return None if best is None else best[:2]


def _counted(batch: Any) -> Optional[Runs]:
    """The same of (rows, columns), or of (rows, columns, features), where the same features fill rows up."""
    ends = []
    for leading in (False, True):
        rows = batch.flip(1) if leading else batch
        same = rows == rows[:, -1].mode(0).values
        runs = runs_at_end(same if same.dim() == 2 else same.all(-1))
        if runs is not None:
            ends.append(runs._replace(leading=leading))
    return max(ends, default=None)


def runs_at_end(flags: Any) -> Optional[Runs]:
    """The flags that are set at the end of each row of a 2-d tensor without a gap; None if these are all, or
    many are elsewhere, or one in each row (which ends it)."""
    runs = flags.flip(1).long().cumprod(1).sum(1)
    padded, everywhere = int(runs.sum()), int(flags.sum())
    if padded == flags.numel() or everywhere - padded > ELSEWHERE * padded or int(runs.max()) < 2:
        return None
    return Runs(padded, int(runs.min()), bool((runs != runs[0]).any()))
