"""What the profiler itself cost, so that it can be taken off where it fell.

Recording an op costs about the same whatever the op does, and a line event too. Scaling everything
by one factor would charge long ops for what short ones cost; so first the cost of each record is
taken off at the line at which it fell, and only what remains is scaled to the unprofiled step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.trace.columns import Trace

#: Recording an op with its shapes costs about this many times what a line record costs.
LINES_AN_OP = 5.0
#: A line record's cost where a run has too few of them to tell (about what a quick core needs).
USUAL_LINE_NS = 300.0
FEW = 100
#: Slowdown beyond this many times the expected cost is noise of the two windows, and stays proportional.
MOST_TIMES = 4.0
#: However much the profiler cost, this much of what was seen stays.
LEAST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Overhead:
    """Nanoseconds that one line record, and one recorded op, added to the profiled steps."""

    per_line_ns: float
    per_op_ns: float


def overhead(trace: Trace, step_ns: float, window: tuple[int, int]) -> Overhead:
    """From the run itself: the slowdown, shared out by the number of records of both kinds.

    What a line record costs at least is seen in the shortest gaps between two of them. Sampling was
    tried as the other way to tell: a sampling thread gets its turn when an operator lets go of the
    interpreter's lock, so it finds operators and hardly ever the pure Python between them.
    """
    low, high = trace.records.first[trace.main], trace.records.first[trace.main + 1]
    lines = trace.records.time_ns[low:high]
    lines = lines[(lines >= window[0]) & (lines < window[1])]
    host = trace.host
    inside = (host.thread == trace.main) & (host.start_ns >= window[0]) & (host.start_ns < window[1])
    ops = host.start_ns[inside]
    gaps = np.diff(lines)
    without_ops = gaps[np.diff(np.searchsorted(ops, lines)) == 0]
    per_line = float(np.percentile(without_ops, 10)) if len(without_ops) >= FEW else USUAL_LINE_NS
    per_op = LINES_AN_OP * per_line
    expected = per_line * len(lines) + per_op * len(ops)
    slower = max(0.0, (window[1] - window[0]) - step_ns * trace.steps)
    times = min(MOST_TIMES, slower / expected) if expected else 0.0
    return Overhead(per_line * times, per_op * times)
