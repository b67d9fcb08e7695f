"""Names of events, each stored once, and masks over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


class Names(tuple[str, ...]):
    """Names by number, as in the ``name`` columns.

    Each mask is computed once. It has one entry per name, and a last one that is False: so an index of -1
    means "no name", and a lookup works even if there are no names.
    """

    _masks: dict[object, Bools]

    def __new__(cls, names: Iterable[str] = ()) -> Names:
        """The same as ``tuple(names)``."""
        made = super().__new__(cls, names)
        made._masks = {}
        return made

    def mask(self, *prefixes: str) -> Bools:
        """Which names begin with one of ``prefixes``."""
        return self._mask(("begins", prefixes), lambda name: name.startswith(prefixes))

    def containing(self, *parts: str) -> Bools:
        """Which names contain one of ``parts``."""
        return self._mask(("contains", parts), lambda name: any(part in name for part in parts))

    def _mask(self, key: object, holds: Callable[[str], bool]) -> Bools:
        if key not in self._masks:
            mask = np.array([*map(holds, self), False])
            mask.setflags(write=False)
            self._masks[key] = mask
        return self._masks[key]
