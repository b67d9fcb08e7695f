"""Contradictions in a trace: clocks that differ, calls with the same number, very long names.

Each is corrected if possible, and reported in one note.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warpline.model import units
from warpline.trace.columns import RUNTIME, Bools, Host, Ints, Kernels

#: A kernel cannot begin before its launch. If it does by this much, host and device have different clocks:
#: Kineto converts the device's clock to the host's with an error of microseconds.
CLOCKS_NS = 1_000_000
LONGEST_NAME = 8_000  # characters; the longest of our recorded runs, one of torch's own kernels, has 5,050


def one_clock(kernels: Kernels, host: Host) -> tuple[Kernels, list[str]]:
    """Kernels on the host's clock. If most of them begin before their launch, all are shifted until none
    does."""
    linked = kernels.launch >= 0
    lag = kernels.start_ns[linked] - host.start_ns[kernels.launch[linked]]
    if not len(lag) or np.median(lag) > -CLOCKS_NS:
        return kernels, []
    by = -int(lag.min())
    moved = replace(kernels, start_ns=kernels.start_ns + by, end_ns=kernels.end_ns + by)
    return moved, [
        f"the device's clock in the trace is {units.ms(by / 1e6)} behind the host's: kernels "
        "were shifted so that none starts before its launch"
    ]


def launches(kernels: Kernels, host: Host) -> list[str]:
    """Notes on kernels without a launch, and on launches with the same number."""
    notes = []
    lost = int(np.count_nonzero(kernels.launch < 0))
    if lost:
        notes.append(
            f"{lost} of {len(kernels)} kernels and copies have no launch in the trace: "
            "their time is unattributed"
        )
    met, calls = np.unique(host.correlation[numbered(host)], return_counts=True)
    met, calls = met[calls > 1], calls[calls > 1]
    linked = kernels.launch[kernels.launch >= 0] if len(met) else met
    shared = int(calls[np.isin(met, host.correlation[linked])].sum())
    if shared:
        notes.append(
            f"{shared} launches have the same number as another one: each kernel is attributed to the last "
            "launch before it"
        )
    return notes


def numbered(host: Host) -> Bools:
    """Which host events are runtime calls with a number that links kernels to them."""
    found: Bools = (host.kind == RUNTIME) & (host.correlation >= 0)
    return found


def last_launches(correlation: Ints, start: Ints, host: Host) -> Ints:
    """The runtime call with each kernel's number, -1 for none. If several calls have that number, the last
    one that begins before the kernel."""
    calls = np.flatnonzero(numbered(host))
    if not len(calls):
        return np.full(len(correlation), -1, np.int64)
    calls = calls[np.lexsort((host.start_ns[calls], host.correlation[calls]))]
    known = host.correlation[calls]
    first = np.minimum(np.searchsorted(known, correlation), len(calls) - 1)
    found = np.where(known[first] == correlation, calls[first], -1)
    if not (np.diff(known) == 0).any():
        return found
    # Number and time as one key: their ranks are used, so that the key fits into an integer.
    moments = np.unique(np.concatenate([host.start_ns[calls], start]))
    numbers, rank = np.unique(known, return_inverse=True)
    key = rank * (len(moments) + 1) + np.searchsorted(moments, host.start_ns[calls])
    of_kernel = np.searchsorted(numbers, correlation) * (len(moments) + 1) + np.searchsorted(moments, start)
    last = np.maximum(np.searchsorted(key, of_kernel, "right") - 1, 0)
    met = (found >= 0) & (known[last] == correlation)
    return np.where(met, calls[last], found)


def shortened(names: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """``names``, cut to ``LONGEST_NAME`` characters, and a note if any was longer."""
    long = sum(len(name) > LONGEST_NAME for name in names)
    if not long:
        return names, []
    cut = tuple(f"{name[: LONGEST_NAME - 1]}…" if len(name) > LONGEST_NAME else name for name in names)
    which = "name is" if long == 1 else "names are"
    return cut, [f"{long} {which} longer than {LONGEST_NAME:,} characters, shown shortened"]
