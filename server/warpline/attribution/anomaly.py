"""What autograd's anomaly detection adds to a step: a traceback for each node, a check of each gradient."""

from __future__ import annotations

import numpy as np

from warpline.attribution.around import NODE_PREFIX, operators
from warpline.attribution.timeline import union
from warpline.trace import nest
from warpline.trace.columns import Bools, Floats, Ints, Trace, take

#: What autograd calls on each gradient after a backward function: in the range of its node, outside that of
#: the function.
CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::any", "aten::item")


def checks(trace: Trace) -> Bools:
    """Which host events look for NaN in a gradient, or are called by one that does."""
    host = trace.host
    if not trace.facts.flags.anomaly_mode:
        return np.zeros(len(host), bool)
    called = operators(trace, *CHECKS) & take(operators(trace, NODE_PREFIX), host.parent, missing=False)
    (found,) = nest.nearest(host.parent, host.depth, called)
    return found >= 0


def tracebacks(trace: Trace) -> tuple[Ints, Ints]:
    """Begin and end of the time in which tracebacks were stored, in ns."""
    spans = np.array(trace.facts.traceback_ns or (), np.int64).reshape(-1, 2)
    return union(spans[:, 0], spans[:, 1])


def within(start: Ints, end: Ints, spans: tuple[Ints, Ints]) -> Floats:
    """How many ns of each stretch from ``start`` to ``end`` lie in ``spans``, which are sorted and apart."""
    begins, ends = spans
    if not len(begins):
        return np.zeros(len(start))
    before = np.concatenate([[0], np.cumsum(ends - begins)])

    def covered(moment: Ints) -> Ints:
        at = np.searchsorted(begins, moment, "right")
        last = np.maximum(at - 1, 0)
        return np.where(
            at > 0, before[last] + np.clip(moment - begins[last], 0, ends[last] - begins[last]), 0
        )

    found: Floats = (covered(end) - covered(start)).astype(np.float64)
    return found
