"""Backward calls whose gradients are differentiated again: ``autograd.grad(..., create_graph=True)``.

Such gradients (a derivative in a differential equation, a gradient penalty, a step of MAML) are a result that
the script computes. They, and their own backward pass, are attributed to the line that requests them, not to
the lines of the layers.

They are recognized by their numbers: autograd adds nodes for the backward operators of such a call, so these
operators record the number of the next node. In any other backward pass gradients are off, and they record
none.
"""

from __future__ import annotations

import numpy as np

from warpline.trace import nest
from warpline.trace.columns import OP, Bools, Ints, Trace, occurring, take

#: Share of a call's nodes whose operators must make nodes. With fewer, it is an ordinary backward pass in
#: which some code switches gradients on, such as a library's checkpointing.
SHARE = 0.5


def differentiated(trace: Trace, node: Ints, own: Bools) -> tuple[Bools, Ints]:
    """Which host events belong to such a call, and for each the main thread's line record at that time.

    ``node``: the innermost backward node around each event, -1 for none. ``own``: whether the event is the
    node's own work, and not Python code in it or a recomputed forward.
    """
    host, records = trace.host, trace.records
    rows = np.flatnonzero((node >= 0) & own)
    caller = np.full(len(host), -1, np.int64)
    main = np.full(len(rows), trace.main, np.int64)
    caller[rows] = nest.last_before(records.thread, records.time_ns, main, host.start_ns[rows])
    ops = rows[(host.kind[rows] == OP) & (node[rows] != rows) & (host.forward_thread[rows] == 0)]
    working = occurring(node[ops], len(host))
    making = occurring(node[ops[host.sequence[ops] >= 0]], len(host))
    if not len(making):
        return np.zeros(len(host), bool), caller
    size = int(records.location.max(initial=0)) + 1
    of_working = np.bincount(take(records.location, caller[working], missing=0), minlength=size)
    of_making = np.bincount(take(records.location, caller[making], missing=0), minlength=size)
    calls = of_making > SHARE * of_working
    calls[0] = False  # not at a user line
    found = np.zeros(len(host), bool)
    found[rows] = calls[take(records.location, caller[rows], missing=0)]
    return found, caller
