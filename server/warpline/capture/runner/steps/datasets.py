"""Numbers the data sets that batches come from.

A script may make a new data set for each epoch: ``for batch in DataLoader(Data(...))``. Its steps are of the
same kind, so a new data set gets the number of a deleted one if type and length are the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


class Datasets:
    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], Any], int]] = {}  # id -> reference, number
        self._alike: dict[tuple[type, int | None], list[tuple[Callable[[], Any], int]]] = {}
        self._numbers = 0

    def of(self, iterator: Any) -> int:
        """The number of the data set that a loader's iterator draws from."""
        dataset = getattr(iterator, "_dataset", None)
        known = self._known.get(id(dataset))
        if known is not None and known[0]() is dataset:
            return known[1]
        return self._add(dataset)

    def _add(self, dataset: Any) -> int:
        try:
            reference: Callable[[], Any] = weakref.ref(dataset)
        except TypeError:  # a list: all that is like it has its number
            reference = _nothing
        alike = self._alike.setdefault((type(dataset), _length(dataset)), [])
        gone = [number for before, number in alike if before() is None]
        if gone:
            number = gone[0]
        else:
            number = self._numbers = self._numbers + 1
        alike[:] = [(before, other) for before, other in alike if other != number]
        alike.append((reference, number))
        self._known = {at: known for at, known in self._known.items() if known[0]() is not None}
        self._known[id(dataset)] = (reference, number)
        return number


def _length(dataset: Any) -> int | None:
    """``len(dataset)``, or None. This runs user code, so it is called once per data set (once per batch if it
    takes no weak reference, as a list)."""
    try:
        return len(dataset)
    except Exception:  # an iterable data set has no length, and may raise anything
        return None


def _nothing() -> None:
    return None
