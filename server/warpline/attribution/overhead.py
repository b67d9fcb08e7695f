"""The profiler's own cost, to be subtracted where it occurred.

Recording an op costs about the same whatever the op does, and a line event too. Scaling everything
by one factor would charge long ops for what short ones cost; so first the cost of each record is
taken off at the line at which it fell, and only what remains is scaled to the unprofiled step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.trace.columns import Ints, Trace

#: Recording an op with its shapes costs about this many times what a line record costs.
LINES_AN_OP = 5.0
#: A line record's cost where a run has too few of them to tell (about what a quick core needs).
USUAL_LINE_NS = 300.0
FEW = 100
#: Slowdown beyond this many times the expected cost of ops is noise of both windows, and proportional.
MOST_TIMES = 4.0
#: However much the profiler cost, this much of what was seen stays.
LEAST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Overhead:
    """Nanoseconds that a line record, a recorded op, and a record of a library's line added to the steps."""

    per_line_ns: float
    per_op_ns: float
    per_library_line_ns: float


def overhead(trace: Trace, step_ns: float, window: tuple[int, int]) -> Overhead:
    """Line records at what the runner measured for one, ops at what is left of the slowdown.

    The slowdown itself cannot tell what a line record costs: it holds the machine's noise, and a line
    of pure Python, five times quicker than its record, would lose all it has to a little too much. Nor
    can a record have cost more than the shortest gaps between two of them. Runs without that
    measurement share out the slowdown by the number of records of both kinds, up to that bound.

    Sampling was tried as another way to tell: a sampling thread gets its turn when an operator lets go
    of the interpreter's lock, so it finds operators and hardly ever the pure Python between them.
    """
    low, high = trace.records.first[trace.main], trace.records.first[trace.main + 1]
    lines = trace.records.time_ns[low:high]
    lines = lines[(lines >= window[0]) & (lines < window[1])]
    host = trace.host
    # While autograd's thread works the main one waits for it: its operators slow the step as much.
    driving = np.union1d(host.thread[host.forward_thread > 0], trace.main)
    inside = np.isin(host.thread, driving) & (host.start_ns >= window[0]) & (host.start_ns < window[1])
    ops = host.start_ns[inside]
    of_libraries = trace.inside.time_ns[trace.inside.thread == trace.main]
    within = int(((of_libraries >= window[0]) & (of_libraries < window[1])).sum())
    most = _shortest_ns(lines, host.start_ns[inside & (host.thread == trace.main)])
    slower = max(0.0, (window[1] - window[0]) - step_ns * trace.steps)
    expected = most * (len(lines) + within) + LINES_AN_OP * most * len(ops)
    measured = trace.facts.line_record_ns
    per_line = min(most, measured) if measured is not None else most * min(1.0, slower / max(expected, 1.0))
    per_library_line = max(per_line, trace.facts.library_record_ns or 0.0)
    rest = max(0.0, slower - per_line * len(lines) - per_library_line * within)
    per_op = min(rest / len(ops), MOST_TIMES * LINES_AN_OP * most) if len(ops) else 0.0
    return Overhead(per_line, per_op, per_library_line)


def _shortest_ns(lines: Ints, ops: Ints) -> float:
    """The shortest tenth of the gaps between line records in which no op began."""
    gaps = np.diff(lines)
    without_ops = gaps[np.diff(np.searchsorted(ops, lines)) == 0]
    return float(np.percentile(without_ops, 10)) if len(without_ops) >= FEW else USUAL_LINE_NS
