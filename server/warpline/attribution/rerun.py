"""Forward passes that a script's own ``torch.autograd.Function`` runs again in its ``backward``, as
checkpointing that is written by hand does: torch marks nothing there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from warpline.trace.columns import OP, Bools, Ints, Trace, take

#: Share of the forward pass's operators that have to be run again. The rest may save and restore something.
#: Chosen, not fitted.
SHARE = 0.5
#: Finds the forward operator that made each of some nodes; -1 where it is not known.
_Makers = Callable[[Ints], Ints]


def rerun(trace: Trace, node: Ints, inside: Bools, makers: _Makers) -> Bools:
    """Which host events such a ``backward`` runs before it differentiates them.

    It has to run the operators of the function's forward pass again, and all of them before the first
    gradient: a solver's steps back in time, or one of its many steps, are other work. ``node``: the innermost
    of autograd's nodes around each event, -1 for none. ``inside``: whether Python in it runs the event.
    """
    host = trace.host
    found = np.zeros(len(host), bool)
    around = take(node, host.parent, missing=-1)
    nested = np.flatnonzero((node == np.arange(len(host))) & (around >= 0))
    if not len(nested):
        return found
    outer, first = np.unique(around[nested], return_index=True)  # rows are in the order of time
    made = makers(nested)
    for at, begun, forward in zip(outer, nested[first], makers(outer), strict=True):
        own = made[(around[nested] == at) & (made > at)]
        again = np.arange(at + 1, begun)
        again = again[(node[again] == at) & inside[again]]
        before = _calls(trace, _below(trace, forward)) if forward >= 0 else Counter()
        if len(own) and own.max() < begun:
            same = (before & _calls(trace, again)).total()
            found[again] = same > SHARE * before.total()
    return found


def _below(trace: Trace, row: int) -> Ints:
    """The rows of what an event calls."""
    host = trace.host
    last = int(np.searchsorted(host.thread, host.thread[row], "right"))
    calls = int(np.searchsorted(host.start_ns[row + 1 : last], host.end_ns[row]))
    return np.arange(row + 1, row + 1 + calls)


def _calls(trace: Trace, rows: Ints) -> Counter[int]:
    """How often each operator is called among the events ``rows``, by none of them."""
    host = trace.host
    outer = rows[(host.kind[rows] == OP) & ~np.isin(host.parent[rows], rows)]
    return Counter(host.name[outer].tolist())
