"""Streams of devices: what came before each kernel in its own."""

from __future__ import annotations

import numpy as np

from warpline.trace.columns import Ints

#: Long before any trace; half of what an int64 holds, so that times can be taken off it.
NEVER_NS = np.iinfo(np.int64).min // 2


def one_before(stream: Ints, start: Ints, column: Ints) -> Ints:
    """``column`` of the kernel before each one in its stream, in order of ``start``; ``NEVER_NS`` for the
    first."""
    by = np.lexsort((start, stream))
    same = np.flatnonzero(np.diff(stream[by]) == 0)
    before = np.full(len(by), NEVER_NS)
    before[by[same + 1]] = column[by[same]]
    return before
