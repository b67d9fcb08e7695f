"""The profiler's overhead per record, to be subtracted from the line where it occurred.

Recording an op costs about the same for every op, and so does a line event. Scaling all times by one factor
would take too much from long ops and too little from short ones. So first the cost of each record is
subtracted from its line, and then the remaining time is scaled to the unprofiled step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.trace.columns import Ints, Trace

#: Recording an op with its shapes costs about this many times as much as a line record.
LINES_AN_OP = 5.0
#: Cost of a line record in runs with too few of them (about that of a fast core).
USUAL_LINE_NS = 300.0
FEW = 100
#: An op record costs at most this many times the expected cost. The rest of the slowdown is noise between the
#: two windows, and is scaled away.
MOST_TIMES = 4.0
#: Least share of a recorded time that remains after the overhead is subtracted.
LEAST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Overhead:
    """Nanoseconds that each line record, recorded op, and record of a library line added to the steps."""

    per_line_ns: float
    per_op_ns: float
    per_library_line_ns: float


def overhead(trace: Trace, step_ns: float, window: tuple[int, int]) -> Overhead:
    """The cost of each kind of record.

    A line record costs what the runner measured; op records share the rest of the slowdown. The cost of a
    line record cannot come from the slowdown, which contains the machine's noise: a line of pure Python takes
    a fifth of the time of its record, so a slightly too large cost would leave nothing of it. Nor can a line
    record cost more than the shortest gaps between two of them. In runs without the runner's measurement, the
    slowdown is divided by the number of records of both kinds, up to that bound.

    A sampling thread in the process cannot measure this: it runs when an operator releases the GIL, so it
    sees operators and almost never the pure Python between them.
    """
    low, high = trace.records.first[trace.main], trace.records.first[trace.main + 1]
    lines = trace.records.time_ns[low:high]
    lines = lines[(lines >= window[0]) & (lines < window[1])]
    host = trace.host
    # While autograd's thread or a driver works, the main thread waits for it, so its operators slow the step
    # down as well.
    driving = np.zeros(len(trace.threads), bool)
    driving[host.thread[host.forward_thread > 0]] = True
    driving[[trace.main, *trace.drivers]] = True
    inside = driving[host.thread] & (host.start_ns >= window[0]) & (host.start_ns < window[1])
    ops = host.start_ns[inside]
    of_libraries = trace.inside.time_ns[(trace.inside.thread == trace.main) & ~trace.inside.inferred]
    within = int(((of_libraries >= window[0]) & (of_libraries < window[1])).sum())
    here = np.isin(host.thread, (trace.main, *trace.drivers))
    most = _shortest_ns(lines, host.start_ns[inside & here])
    slower = max(0.0, (window[1] - window[0]) - step_ns * trace.steps)
    expected = most * (len(lines) + within) + LINES_AN_OP * most * len(ops)
    measured = trace.facts.line_record_ns
    per_line = min(most, measured) if measured is not None else most * min(1.0, slower / max(expected, 1.0))
    per_library_line = max(per_line, trace.facts.library_record_ns or 0.0)
    rest = max(0.0, slower - per_line * len(lines) - per_library_line * within)
    per_op = min(rest / len(ops), MOST_TIMES * LINES_AN_OP * most) if len(ops) else 0.0
    return Overhead(per_line, per_op, per_library_line)


def _shortest_ns(lines: Ints, ops: Ints) -> float:
    """The 10th percentile, in ns, of the gaps between line records in which no op began."""
    gaps = np.diff(lines)
    without_ops = gaps[np.diff(np.searchsorted(ops, lines)) == 0]
    return float(np.percentile(without_ops, 10)) if len(without_ops) >= FEW else USUAL_LINE_NS
