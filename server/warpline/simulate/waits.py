"""What of one stream waited for another, read off a trace that does not say it.

``cudaStreamWaitEvent`` is recorded without its streams. But a kernel that was queued, behind one that had
ended, and yet did not begin, was held up: where such a call came since the launch before in its stream, by
the kernel of another stream that was the last to end, of those launched before the call; else by the device,
which was full of another stream's work, or by the events in its own queue, some microseconds each. How long
that takes is known of the recorded window only, and stays what it was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpline.trace.columns import RUNTIME, Ints, Trace
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
    host, kernels = trace.host, trace.kernels
    waiting = np.array(["StreamWaitEvent" in name for name in trace.names] or [False])
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
