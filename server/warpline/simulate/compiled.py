"""Compiled code and CUDA graphs: which kernels are left, and what they and the calls cost the host.

Compiled code has neither Python of the user nor autograd nodes between its kernels. It calls libraries
(matrix products, convolutions, attention) much as the script did, and launches each kernel of its own from
generated Python. All that costs the host is counted in launches of an elementwise operator of the same run
(``launch_ns``), because the hosts of two machines differ by several times.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warpline.model import costs
from warpline.model.change import CompiledCalls
from warpline.simulate.timeline import Timeline, without
from warpline.simulate.work import ELEMENTWISE
from warpline.trace.columns import Bools, Floats

#: Host time of a library's call from compiled code, as a share of the same call now.
LIBRARY = costs.value("compiled-library")
#: Host time of a kernel that compiled code launches, in eager launches.
KERNEL = costs.value("compiled-kernel")
#: Kernels of a norm over a batch: its statistics are complete before anything is normalized, and large sums
#: take two kernels.
NORM = costs.value("compiled-norm")
#: Of a call (guards, the runtime around the graph), forward or backward; and of one that replays a CUDA
#: graph, with what each parameter adds.
CALL = costs.value("compiled-call")
GRAPH_CALL, GRAPH_PARAMETER = costs.value("graph-call"), costs.value("graph-parameter")
#: Host time of an elementwise launch where a run has none.
LAUNCH_NS = costs.value("eager-kernel-ns")


def launch_ns(timeline: Timeline) -> float:
    """Host time of the forward pass's elementwise operators, by the kernels that they launch; of lines with
    such kernels."""
    kernels = (timeline.kernel_work == ELEMENTWISE) & ~timeline.kernel_backward
    rows = (timeline.work == ELEMENTWISE) & ~timeline.backward & (timeline.op >= 0)
    rows &= np.isin(timeline.place, np.unique(timeline.kernel_place[kernels]))
    launches = int(kernels.sum())
    return float(timeline.host_ns[rows].sum()) / launches if launches else LAUNCH_NS


def fused(
    timeline: Timeline, kernels: Bools, turned: Bools, norms: Bools, library: Bools, launch: float
) -> Timeline:
    """``kernels`` are compiled; ``host_ns`` of the result is that of compiled code everywhere.

    Each run of memory-bound kernels of a pass becomes one kernel, as long as the longest. ``turned``: layout
    conversions, which Inductor does without (its ``layout_optimization``). ``norms``: kernels of norms over
    a batch: each stays several for the host. ``library``: segments of operators that compiled code
    calls as they are. ``launch``: ``launch_ns`` of the run.
    """
    mergeable = (timeline.kernel_work == ELEMENTWISE) & kernels
    part = timeline.kernel_step * 2 + timeline.kernel_backward
    goes_on = np.concatenate([[False], mergeable[:-1] & (part[1:] == part[:-1])]) if len(part) else mergeable
    begins = mergeable & ~goes_on
    run = np.where(mergeable, np.cumsum(begins), 0)
    widest = np.zeros(int(run.max(initial=0)) + 1)
    np.maximum.at(widest, run, timeline.kernel_ns)
    kernel_ns = np.where(begins, widest[run], timeline.kernel_ns)
    own = (begins & ~turned).astype(np.float64)
    rows = np.flatnonzero(norms & mergeable)
    own[rows[np.unique(timeline.kernel_op[rows], return_index=True)[1]]] += NORM - 1
    segment = np.repeat(np.arange(len(timeline.host_ns)), np.diff(timeline.first))
    launching = np.bincount(segment, own, len(timeline.host_ns)) * KERNEL * launch
    host = np.where(library, timeline.host_ns * LIBRARY, 0.0) + launching
    return without(replace(timeline, host_ns=host, kernel_ns=kernel_ns), (mergeable & ~begins) | turned)


def call_ns(timeline: Timeline, here: Bools, change: CompiledCalls, launch: float) -> Floats:
    """What the calls cost the host, spread evenly over the segments ``here`` of each phase."""
    each = GRAPH_CALL + change.parameters * GRAPH_PARAMETER if change.graphs else CALL
    spent = change.calls * each * launch * timeline.steps
    found: Floats = np.zeros(len(here))
    for phase in (here & ~timeline.backward, here & timeline.backward):
        found[phase] = spent / max(1, phase.sum())
    return found
