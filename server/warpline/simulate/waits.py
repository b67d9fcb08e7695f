"""Waits between streams, inferred from the trace, which does not record them.

``cudaStreamWaitEvent`` is recorded without its streams. But a kernel that starts late, although it is queued
and the kernel before it in its stream has ended, was delayed. If ``cudaStreamWaitEvent`` was called since the
previous launch in its stream, it waited for a kernel of another stream: of those launched before that call,
the last one to end. Otherwise the device was full with another stream's work, or its own queue had events in
it (some microseconds each). A replay keeps the delays of the recorded window.

The kernels of a replayed CUDA graph have no calls of their own. Each is taken to depend on the kernel of the
same replay, on any stream, that ended last before it started.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from warpline.trace.columns import RUNTIME, Ints, Kernels, Trace
from warpline.trace.streams import one_before

#: A stream, and when a kernel of it began in the trace: changes leave both as they are.
Kernel = tuple[int, int]

#: A kernel is delayed if it starts later than this after its launch and the kernel before it in its stream.
#: CUDA itself needs up to that long.
HELD_NS = 3_000
#: How many of the kernels that ended last are searched for the one that was waited for.
LOOKED_AT = 32


class Hold(NamedTuple):
    """``after``: the kernel that was waited for; None: only the launch and the kernel before in the stream.
    ``delay_ns``: from their end to the start of the kernel that waited."""

    after: Kernel | None
    delay_ns: float


def holds(trace: Trace, stream: Ints) -> dict[Kernel, Hold]:
    """The kernels that were delayed. ``stream``: of each kernel. Empty if streams never wait."""
    return _by_events(trace, stream) | _in_graphs(trace, stream)


def _in_graphs(trace: Trace, stream: Ints) -> dict[Kernel, Hold]:
    """Dependencies of the kernels of replayed graphs. A launch with several kernels is a replay.

    The first kernels of a replay waited for the whole previous replay, if the two share a stream.
    """
    kernels = trace.kernels
    order = np.lexsort((kernels.start_ns, kernels.launch))
    order = order[kernels.launch[order] >= 0]
    replays = [part for part in np.split(order, _changes(kernels.launch[order])) if len(part) > 1]
    found: dict[Kernel, Hold] = {}
    latest: dict[int, int] = {}  # per stream, the kernel of its last replay that ended last
    for replay in sorted(replays, key=lambda part: int(kernels.start_ns[part[0]])):
        begun, ends = kernels.start_ns[replay], kernels.end_ns[replay]
        by_end = np.argsort(ends, kind="stable")
        until = np.searchsorted(ends[by_end], begun, "right")
        mine = set(stream[replay].tolist())
        called = int(trace.host.end_ns[kernels.launch[replay[0]]])
        for at, ended in enumerate(until.tolist()):
            last = int(replay[by_end[ended - 1]]) if ended else -1
            # A kernel of length 0 must not wait for itself, nor for one that started at the same time.
            if last < 0 or kernels.start_ns[last] >= begun[at]:
                last = max((latest[one] for one in mine & latest.keys()), key=_ends(kernels), default=-1)
            if last < 0 or kernels.start_ns[last] >= begun[at]:
                continue
            over = int(kernels.end_ns[last])
            # A replay launched after that end did not wait: it starts when it is launched.
            delay = int(begun[at]) - over if ended or called < over else 0
            found[int(stream[replay[at]]), int(begun[at])] = Hold(
                (int(stream[last]), int(kernels.start_ns[last])), max(0, delay)
            )
        latest |= dict.fromkeys(mine, int(replay[by_end[-1]]))
    return found


def _changes(column: Ints) -> Ints:
    """The rows at which a sorted column has another value than the row before."""
    found: Ints = np.flatnonzero(np.diff(column)) + 1
    return found


def _ends(kernels: Kernels) -> Callable[[int], int]:
    return lambda at: int(kernels.end_ns[at])


def _by_events(trace: Trace, stream: Ints) -> dict[Kernel, Hold]:
    """The kernels that ``cudaStreamWaitEvent`` or a full device delayed."""
    host, kernels = trace.host, trace.kernels
    waiting = trace.names.containing("StreamWaitEvent")
    calls = np.sort(host.start_ns[(host.kind == RUNTIME) & waiting[host.name]])
    if not len(calls) or len(np.unique(stream)) < 2:
        return {}
    launched = kernels.launch >= 0
    queued = np.where(launched, host.end_ns[kernels.launch], kernels.start_ns)
    call = np.where(launched, host.start_ns[kernels.launch], kernels.start_ns)
    passed = np.searchsorted(calls, call)
    before, told = (one_before(stream, kernels.start_ns, column) for column in (kernels.end_ns, passed))
    could = np.maximum(before, queued)
    ending = np.argsort(kernels.end_ns, kind="stable")
    until = np.searchsorted(kernels.end_ns[ending], kernels.start_ns, "right")
    found = {}
    for at in np.flatnonzero(kernels.start_ns - could > HELD_NS).tolist():
        begun = int(kernels.start_ns[at])
        after = None
        if passed[at] > told[at]:
            for other in ending[max(0, until[at] - LOOKED_AT) : until[at]][::-1].tolist():
                if kernels.end_ns[other] <= could[at]:
                    break
                if stream[other] != stream[at] and passed[other] < passed[at]:
                    after = other
                    break
        found[int(stream[at]), begun] = (
            Hold(None, begun - int(could[at]))
            if after is None
            else Hold((int(stream[after]), int(kernels.start_ns[after])), begun - int(kernels.end_ns[after]))
        )
    return found
