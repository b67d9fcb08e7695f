"""Steps that run on another thread, such as an executor's, while the main thread waits for it.

While such a thread is at a user line, the host's line is that one, and not the main thread's ``result()``. So
its records are copied to the main thread, as if the main thread had called the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warpline.trace.columns import Records, take


def with_drivers(records: Records, main: int, drivers: Sequence[int]) -> Records:
    """``records``, with those of the ``drivers`` (threads that step the optimizer) on ``main`` as well.

    Unchanged if ``main`` steps the optimizer too: the other threads then work in parallel to it.
    """
    if main in drivers or not drivers:
        return records
    rows = np.flatnonzero(np.isin(records.thread, drivers))
    own = slice(records.first[main], records.first[main + 1])
    at = np.searchsorted(records.time_ns[own], records.time_ns[rows], "right") - 1
    back = records.location[rows] == 0  # the driver waits for work: the main thread's own line applies again
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
