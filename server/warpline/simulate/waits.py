"""Waits between streams, inferred from the trace, which does not record them.

``cudaStreamWaitEvent`` is recorded without its streams. But a kernel that was queued, behind one that had
ended, and yet did not begin, was held up: where such a call came since the launch before in its stream, by
the kernel of another stream that was the last to end, of those launched before the call; else by the device,
which was full of another stream's work, or by the events in its own queue, some microseconds each. How long
that takes is known of the recorded window only, and stays what it was.

The kernels of a replayed CUDA graph have no calls of their own. Each one begins after the kernel of that
replay, on whatever stream, that ended last before it, as the graph's own dependencies had it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from warpline.trace.columns import RUNTIME, Ints, Kernels, Trace
from warpline.trace.streams import one_before

#: A stream, and when a kernel of it began in the trace: changes leave both as they are.
Kernel = tuple[int, int]

#: Held up is what begins later than this after all that it visibly waited for; CUDA itself needs so long.
HELD_NS = 3_000
#: Kernels that ended last before a moment: among so many the one that was waited for is looked for.
LOOKED_AT = 32


class Hold(NamedTuple):
    """``after``: the kernel that was waited for; None: its own launch, and the one before in its stream.
    ``delay_ns``: from their end to the beginning of the one that waited."""

    after: Kernel | None
    delay_ns: float


def holds(trace: Trace, stream: Ints) -> dict[Kernel, Hold]:
    """The kernels that were held up; ``stream`` of each kernel. Empty where streams never wait."""
    return _by_events(trace, stream) | _in_graphs(trace, stream)


def _in_graphs(trace: Trace, stream: Ints) -> dict[Kernel, Hold]:
    """What the kernels of replayed graphs waited for: one launch that has several kernels is a replay.

    The first ones waited for all of the replay before, where that shares a stream with theirs.
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
            # A kernel that took no time must not wait for itself, nor for one that began no earlier.
            if last < 0 or kernels.start_ns[last] >= begun[at]:
                last = max((latest[one] for one in mine & latest.keys()), key=_ends(kernels), default=-1)
            if last < 0 or kernels.start_ns[last] >= begun[at]:
                continue
            over = int(kernels.end_ns[last])
            # A replay that was launched later than that did not wait: its launch says when it begins.
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
    """The kernels that ``cudaStreamWaitEvent``, or a full device, held up."""
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
