"""Streams of devices: the previous kernel in each kernel's stream."""

from __future__ import annotations

import numpy as np

from warpline.trace.columns import Ints

#: A time long before any trace. It is half the range of an int64, so that subtracting a time does not
#: overflow.
NEVER_NS = np.iinfo(np.int64).min // 2


def one_before(stream: Ints, start: Ints, column: Ints) -> Ints:
    """The value of ``column`` for the previous kernel in each kernel's stream, in order of ``start``;
    ``NEVER_NS`` for the first kernel of a stream."""
    by = np.lexsort((start, stream))
    same = np.flatnonzero(np.diff(stream[by]) == 0)
    before = np.full(len(by), NEVER_NS)
    before[by[same + 1]] = column[by[same]]
    return before
