"""Steps that run on other threads, such as an executor's or a server's, while the main thread waits for them.

While such a thread is at a user line, the host's line is that one, and not the main thread's ``result()``. So
its records are copied to the main thread, as if the main thread had called the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warpline.trace.columns import Bools, Ints, Records, take


def with_drivers(
    records: Records, inside: Records, main: int, drivers: Sequence[int], only_waits: bool = False
) -> tuple[Records, Records]:
    """``records``, with those of the ``drivers`` (threads that make the steps) on ``main`` as well, and
    likewise ``inside`` (library lines).

    Of several drivers at once, as where a server sends an answer while it begins the next request, the line
    that began last applies. ``only_waits``: ``main`` calls no operators, so the drivers' lines go before its
    own, such as a ``join()`` that begins just after a driver did.
    """
    rows = np.flatnonzero(np.isin(records.thread, drivers))
    back = records.location[rows] == 0  # the driver waits for work: what else goes on applies again
    location, owner = records.location[rows], records.thread[rows]
    own = np.arange(records.first[main], records.first[main + 1])
    location[back], owner[back] = _at_work(records, main, drivers, records.time_ns[rows[back]])
    time_ns, again = records.time_ns[rows], records.again[rows] | back
    if only_waits:
        busy, at = _at_work(records, main, drivers, records.time_ns[own])
        met = at != main
        time_ns = np.append(time_ns, records.time_ns[own][met])
        again = np.append(again, np.ones(int(met.sum()), bool))
        location, owner = np.append(location, busy[met]), np.append(owner, at[met])
    by = np.argsort(time_ns, kind="stable")
    copied = time_ns[by], location[by], again[by], np.zeros(len(by), bool)
    merged = _with(records, main, rows, copied)
    # A library's line applies while its thread's line does.
    began = np.append(records.time_ns[own], copied[0])
    whose = np.append(np.full(len(own), main), owner[by])
    order = np.argsort(began, kind="stable")
    libraries = np.flatnonzero(np.isin(inside.thread, drivers))
    last = np.searchsorted(began[order], inside.time_ns[libraries], "right") - 1
    libraries = libraries[take(whose[order], last) == inside.thread[libraries]]
    libraries = libraries[np.argsort(inside.time_ns[libraries], kind="stable")]
    spoken = (
        inside.time_ns[libraries], inside.location[libraries], inside.again[libraries],
        inside.inferred[libraries],
    )  # fmt: skip
    return merged, _with(inside, main, libraries, spoken)


def _at_work(records: Records, main: int, drivers: Sequence[int], when: Ints) -> tuple[Ints, Ints]:
    """The line that applies at each time, and its thread: of the drivers at a line of the user's that which
    came there last, else ``main``."""
    location, owner = np.zeros(len(when), np.int64), np.full(len(when), main)
    since = np.full(len(when), -1)
    for thread in (main, *drivers):
        own = slice(records.first[thread], records.first[thread + 1])
        at = np.searchsorted(records.time_ns[own], when, "right") - 1
        here = take(records.location[own], at, missing=0)
        began = np.where(here > 0, take(records.time_ns[own], at), -1) if thread != main else since
        better = (began > since) if thread != main else np.ones(len(when), bool)
        location[better], owner[better] = here[better], thread
        since = np.maximum(since, began)
    return location, owner


def _with(records: Records, main: int, rows: Ints, copied: tuple[Ints, Ints, Bools, Bools]) -> Records:
    """``records``, with others on ``main`` as well: times, locations, which are no new beginnings, and which
    were not recorded.
    ``rows``: where the copies are from; what began there counts once."""
    time_ns = np.append(records.time_ns, copied[0])
    thread = np.append(records.thread, np.full(len(copied[0]), main))
    location, again = np.append(records.location, copied[1]), records.again.copy()
    again[rows] = True
    again = np.append(again, copied[2])
    inferred = np.append(records.inferred, copied[3])
    by = np.lexsort((time_ns, thread))
    return replace(
        records,
        time_ns=time_ns[by],
        thread=thread[by],
        location=location[by],
        first=np.searchsorted(thread[by], np.arange(len(records.first))),
        again=again[by],
        inferred=inferred[by],
    )
