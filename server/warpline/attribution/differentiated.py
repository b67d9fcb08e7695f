"""Backward calls whose gradients are differentiated in their turn: ``autograd.grad(..., create_graph=True)``.

Such gradients (a derivative in a differential equation, a gradient penalty, a step of MAML) are part of what
the script computes: they are at the line that asks for them, not at the lines of the layers they come from,
and so is what the later backward pass does for them. Autograd makes nodes for its own operators then, so
they carry the number of the next node; in any other backward pass gradients are off and they carry none.
"""

from __future__ import annotations

import numpy as np

from warpline.trace import nest
from warpline.trace.columns import OP, Bools, Ints, Trace, take

#: Of the nodes of a call, those whose operators make nodes: fewer, and it is another one in whose backward
#: some code switches gradients on, such as a checkpoint of a library's.
SHARE = 0.5


def differentiated(trace: Trace, node: Ints, own: Bools) -> tuple[Bools, Ints]:
    """Which host events belong to such a call, and the line record that held at the call on the main thread.

    ``node``: the innermost backward node around each event, -1 for none. ``own``: of the node itself; not
    Python that runs inside, nor a forward that is run again.
    """
    host, records = trace.host, trace.records
    rows = np.flatnonzero((node >= 0) & own)
    caller = np.full(len(host), -1, np.int64)
    main = np.full(len(rows), trace.main, np.int64)
    caller[rows] = nest.last_before(records.thread, records.time_ns, main, host.start_ns[rows])
    ops = rows[(host.kind[rows] == OP) & (node[rows] != rows) & (host.forward_thread[rows] == 0)]
    working = np.unique(node[ops])
    making = np.unique(node[ops[host.sequence[ops] >= 0]])
    if not len(making):
        return np.zeros(len(host), bool), caller
    size = int(records.location.max(initial=0)) + 1
    of_working = np.bincount(take(records.location, caller[working], missing=0), minlength=size)
    of_making = np.bincount(take(records.location, caller[making], missing=0), minlength=size)
    calls = of_making > SHARE * of_working
    calls[0] = False  # in no line of the user's
    found = np.zeros(len(host), bool)
    found[rows] = calls[take(records.location, caller[rows], missing=0)]
    return found, caller
