"""Steps that run on another thread, such as an executor's, while the main thread waits for it.

While such a thread is at a user line, the host's line is that one, and not the main thread's ``result()``. So
its records are copied to the main thread, as if the main thread had called the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warpline.trace.columns import Records, take

OVERLAP = 0.05  # a thread may still end its step when the next one begins


def in_turn(records: Records, drivers: Sequence[int]) -> bool:
    """Whether several threads make the steps one after the other, such as a server's with one for each
    request: hardly ever are two of them at lines of the user's."""
    begun, ended = [], []
    for thread in drivers:
        own = slice(records.first[thread], records.first[thread + 1])
        time_ns, at_work = records.time_ns[own], records.location[own][:-1] > 0
        begun.append(time_ns[:-1][at_work])
        ended.append(time_ns[1:][at_work])
    begin, end = np.concatenate(begun), np.concatenate(ended)
    by = np.argsort(begin, kind="stable")
    begin, end = begin[by], end[by]
    earlier = np.maximum.accumulate(end)[:-1]
    twice = np.clip(np.minimum(earlier, end[1:]) - begin[1:], 0, None).sum()
    return len(drivers) > 1 and bool(twice <= OVERLAP * (end - begin).sum())


def with_drivers(records: Records, main: int, drivers: Sequence[int], only_waits: bool = False) -> Records:
    """``records``, with those of the ``drivers`` (threads that step the optimizer) on ``main`` as well.

    Unchanged if ``main`` steps the optimizer too: the other threads then work in parallel to it.
    ``only_waits``: ``main`` calls no operators, so the drivers' lines go before its own, such as a ``join()``
    that begins just after a driver did.
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
    again = np.append(again, records.again[rows] | back)
    location = np.append(records.location, location)
    if only_waits:
        rows = rows[np.argsort(records.time_ns[rows], kind="stable")]
        last = np.searchsorted(records.time_ns[rows], records.time_ns[own], "right") - 1
        driver = take(records.location[rows], last, missing=0)
        met = driver > 0
        time_ns = np.append(time_ns, records.time_ns[own][met])
        thread = np.append(thread, np.full(int(met.sum()), main))
        again = np.append(again, np.ones(int(met.sum()), bool))
        location = np.append(location, driver[met])
    by = np.lexsort((time_ns, thread))
    first = np.searchsorted(thread[by], np.arange(len(records.first)))
    return replace(
        records,
        time_ns=time_ns[by],
        thread=thread[by],
        location=location[by],
        first=first,
        again=again[by],
    )
