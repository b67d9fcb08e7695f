"""Steps that other threads make for the main one, as those of an executor do while it waits for them.

While such a thread is at a line of the user's, that line is what the host does, and not the main thread's
``result()``. So its records are the main thread's too, as if that had called what the other one ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warpline.trace.columns import Records, take


def with_drivers(records: Records, main: int, drivers: Sequence[int]) -> Records:
    """``records`` with those of the ``drivers`` (threads that step the optimizer) on ``main`` as well.

    Unchanged where ``main`` steps it itself: then the others work beside it.
    """
    if main in drivers or not drivers:
        return records
    rows = np.flatnonzero(np.isin(records.thread, drivers))
    own = slice(records.first[main], records.first[main + 1])
    at = np.searchsorted(records.time_ns[own], records.time_ns[rows], "right") - 1
    back = records.location[rows] == 0  # it waits for more work: the main thread's line goes on
    location = np.where(back, take(records.location[own], at, missing=0), records.location[rows])
    time_ns = np.append(records.time_ns, records.time_ns[rows])
    thread = np.append(records.thread, np.full(len(rows), main))
    again = records.again.copy()
    again[rows] = True  # a line that began counts once
    by = np.lexsort((time_ns, thread))
    first = np.searchsorted(thread[by], np.arange(len(records.first)))
    return replace(
        records,
        time_ns=time_ns[by],
        thread=thread[by],
        location=np.append(records.location, location)[by],
        first=first,
        again=np.append(again, records.again[rows] | back)[by],
    )
