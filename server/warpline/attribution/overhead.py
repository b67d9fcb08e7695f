"""What the profiler itself cost, so that it can be taken off where it fell.

Recording an op costs about the same whatever the op does, and a line event too. Scaling everything
by one factor would charge long ops for what short ones cost; so first the cost of each record is
taken off at the line at which it fell, and only what remains is scaled to the unprofiled step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.trace.columns import Trace

#: No recorder is as slow as this: what is beyond is noise of the two windows, and stays proportional.
MOST_PER_LINE_NS = 2_000.0
MOST_PER_OP_NS = 4_000.0
#: However much the profiler cost, this much of what was seen stays.
LEAST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Overhead:
    """Nanoseconds that one line record, and one recorded op, added to the profiled steps."""

    per_line_ns: float
    per_op_ns: float


def overhead(trace: Trace, step_ns: float, window: tuple[int, int]) -> Overhead:
    """From the run itself: the shortest gaps between line records, then what is left of the slowdown."""
    low, high = trace.records.first[trace.main], trace.records.first[trace.main + 1]
    lines = trace.records.time_ns[low:high]
    lines = lines[(lines >= window[0]) & (lines < window[1])]
    host = trace.host
    ops = host.start_ns[
        (host.thread == trace.main) & (host.start_ns >= window[0]) & (host.start_ns < window[1])
    ]
    slower = max(0.0, (window[1] - window[0]) - step_ns * trace.steps)
    gaps = np.diff(lines)
    without_ops = gaps[np.diff(np.searchsorted(ops, lines)) == 0]
    per_line = float(np.percentile(without_ops, 10)) if len(without_ops) else 0.0
    per_line = min(per_line, MOST_PER_LINE_NS, slower / max(1, len(lines)))
    per_op = min(MOST_PER_OP_NS, (slower - per_line * len(lines)) / max(1, len(ops)))
    return Overhead(per_line, max(0.0, per_op))
