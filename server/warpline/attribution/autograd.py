"""Counts the nodes that each line adds to autograd's graph, and those that no backward pass visits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution.around import NODE_PREFIX, operators
from warpline.attribution.place import RECOMPUTE, THREAD_SHIFT, node_numbers
from warpline.attribution.scene import Scene
from warpline.trace import nest
from warpline.trace.columns import OP, Bools, Floats, Ints, Trace, take

CASTS = ("aten::to", "aten::_to_copy")


@dataclass(frozen=True, slots=True)
class Nodes:
    """``made``, ``unused``: nodes per step, by line number. ``makers``: rows of the operators that made one
    node each; ``is_unused``: whether no backward pass visits that node."""

    made: Floats
    unused: Floats
    makers: Ints
    is_unused: Bools


def nodes(scene: Scene) -> Nodes:
    """Autograd nodes by line.

    Each operator records the number of the next node: of the operators with the same number, the last one to
    begin made that node. A backward node records its own number. A node is unused if no backward node has its
    number.

    Two kinds of nodes that nothing visits do not count at all, because no edit prevents them: those of a
    forward that checkpointing runs again, which hold the saved tensors, and casts of weights, which autocast
    keeps with their graph for the whole region, under ``torch.no_grad()`` too.
    """
    trace = scene.trace
    makers, keys = _made(scene)
    casts = trace.names.mask(*CASTS)[trace.host.name[makers]]
    numbers = _visited(trace)
    at = nest.latest(keys, numbers)
    visited = np.zeros(len(keys), bool)
    visited[at[(at >= 0) & (take(keys, at) == numbers)]] = True
    counted = visited | ~(casts | (scene.placed.phase[makers] == RECOMPUTE))
    makers, unused = makers[counted], ~visited[counted]
    lines = scene.placed.line[makers]
    count = np.ones(len(makers))
    return Nodes(
        scene.by_line(lines, count) / trace.steps,
        scene.by_line(lines[unused], count[unused]) / trace.steps,
        makers,
        unused,
    )


def _made(scene: Scene) -> tuple[Ints, Ints]:
    """Operators that made a node, and the nodes' keys (forward thread and number), sorted."""
    host = scene.trace.host
    rows = np.flatnonzero(
        (host.kind == OP) & (host.sequence >= 0) & (host.forward_thread == 0) & scene.begun(host.start_ns)
    )
    key = (host.thread[rows] << THREAD_SHIFT) + host.sequence[rows]
    by = np.lexsort((host.start_ns[rows], key))
    rows, key = rows[by], key[by]
    thread = host.thread[rows]
    last = np.append(key, -1)[1:] != key
    # It is unknown whether a node got the highest number of a thread.
    final = np.append(thread, -1)[1:] != thread
    return rows[last & ~final], key[last & ~final]


def _visited(trace: Trace) -> Ints:
    host = trace.host
    found = np.flatnonzero(operators(trace, NODE_PREFIX))
    number, forward = node_numbers(trace, found)
    thread = np.full(int(host.forward_thread.max(initial=0)) + 1, trace.main, np.int64)
    for torch_number, index in trace.forward_threads.items():
        if 0 <= torch_number < len(thread):
            thread[torch_number] = index
    known = number >= 0
    keys: Ints = (thread[forward[known]] << THREAD_SHIFT) + number[known]
    return keys
