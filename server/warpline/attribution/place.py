"""The line that caused each host event, and its phase.

- Forward: the last line record before the event on its thread.
- Backward: the line of the forward op that made the autograd node, found by (sequence number, forward
thread).
  Nodes without a number (gradient accumulation) get the line of the node before them.
- Python inside a node (the user's ``backward``, a hook, a recomputed forward): its own line records.
- Gradients that are differentiated again: forward work of the line that requests them (``differentiated``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from warpline.attribution.around import Around, around
from warpline.attribution.compiled import Calls, compiled_calls
from warpline.attribution.differentiated import differentiated
from warpline.attribution.rerun import rerun
from warpline.attribution.table import LineTable
from warpline.model.report import Phase
from warpline.trace import nest
from warpline.trace.columns import OP, Bools, Ints, Trace, take

RECOMPUTE_MARK = "warpline.recompute"
#: Node of reentrant checkpointing, for traces without the runner's recomputation marks.
CHECKPOINT_NODE = "CheckpointFunctionBackward"
FORWARD, BACKWARD, RECOMPUTE = 0, 1, 2
PHASES: tuple[Phase, ...] = ("forward", "backward", "recompute")
THREAD_SHIFT = 44  # sequence numbers stay far below 2**44


@dataclass(frozen=True, slots=True)
class Placed:
    """Columns with one row per event of ``Trace.host``; ``calls`` is a table of its own."""

    line: Ints  # number in the LineTable, 0: none
    phase: Ints  # FORWARD, BACKWARD, RECOMPUTE
    around: Around  # the calls that enclose each event
    record: Ints  # the current line record when the event began, -1: none
    cause: Ints  # the line record that the event is attributed to (its forward operator's), -1: none
    calls: Calls  # the calls of compiled graphs
    inside: Ints  # library line, by number in ``Trace.libraries``, 0: none


def location_of(trace: Trace, record: Ints) -> Ints:
    """Location of each record; 0 for record -1."""
    return take(trace.records.location, record, missing=0)


def python_inside(trace: Trace, record: Ints, since: Ints) -> Bools:
    """Whether ``record`` is of a user's line, is newer than the record ``since``, and is of a different line.

    When Python returns from inside an op, the caller's line is recorded again: the record is newer, but its
    line is the same. What the op does from then on is its own work.
    """
    if not len(trace.records.location):
        return np.zeros(len(record), bool)
    here, before = location_of(trace, record), location_of(trace, since)
    inside: Bools = (record > since) & (here != before) & (here > 0)
    return inside


def place(trace: Trace, table: LineTable) -> Placed:
    """The line and phase of every host event."""
    host = trace.host
    records = trace.records
    record = nest.last_before(records.thread, records.time_ns, host.thread, host.start_ns)
    climbed = around(trace)
    node = climbed.node
    inside = np.zeros(len(host), bool)
    under = node >= 0
    inside[under] = python_inside(trace, record[under], record[node[under]])
    phase = _phases(trace, node, inside)
    further, caller = differentiated(trace, node, ~inside & (phase != RECOMPUTE))
    phase[further] = FORWARD
    record[further] = caller[further]
    own = table.of_location[location_of(trace, record)]
    origin = _origins(trace, node, inside)
    origin[further] = -1
    last = _ends(origin)
    line = _waited_for(trace, table, node, own[last])
    calls = compiled_calls(trace, table, climbed, origin)
    known = calls.of_event >= 0
    line[known] = np.array([lines[0] for _, lines, _ in calls.groups], np.int64)[calls.of_event[known]]
    at_library = inside_at(trace, host.thread, host.start_ns, record)
    # A recomputed forward pass runs the library's lines again, and its backward pass belongs to them.
    again = np.where((phase == RECOMPUTE) & (at_library > 0), -1, origin)
    library = at_library[_ends(again)]
    # Compiled code belongs to the user's lines, even if a library calls it.
    library[known & (line != table.of_location[location_of(trace, record)])] = 0
    return Placed(line, phase, climbed, record, record[last], calls, library)


def inside_at(trace: Trace, thread: Ints, time_ns: Ints, record: Ints) -> Ints:
    """The library line that each thread is at: the last one since the user's line record ``record``; 0:
    none."""
    of = trace.inside
    if not len(of.time_ns):
        return np.zeros(len(time_ns), np.int64)
    at = nest.last_before(of.thread, of.time_ns, thread, time_ns)
    since = take(trace.records.time_ns, record, missing=0)
    return np.where(take(of.time_ns, at) >= since, take(of.location, at), 0)


def _waited_for(trace: Trace, table: LineTable, node: Ints, line: Ints) -> Ints:
    """Lines for events on autograd's threads outside of nodes (such as the end of a reduction): the line at
    which the main thread waits for the backward pass."""
    host, records = trace.host, trace.records
    helper = np.zeros(len(trace.threads), bool)
    helper[host.thread[node >= 0]] = True
    helper[trace.main] = False
    rows = np.flatnonzero((line == 0) & helper[host.thread])
    main = np.full(len(rows), trace.main, np.int64)
    waiting = nest.last_before(records.thread, records.time_ns, main, host.start_ns[rows])
    line[rows] = table.of_location[location_of(trace, waiting)]
    return line


def _origins(trace: Trace, node: Ints, inside: Bools) -> Ints:
    """The event from which each event gets its line; -1 if it keeps its own."""
    host = trace.host
    nodes = np.flatnonzero(node == np.arange(len(host)))
    origin = np.full(len(host), -1, np.int64)
    number, forward = node_numbers(trace, nodes)
    origin[nodes] = _forward_ops(trace, nodes, number, forward)
    lost = number < 0
    # A node without a number follows the last node with one before it on its thread.
    found = np.where(lost, -1, np.arange(len(nodes)))
    before = np.maximum.accumulate(found)
    usable = lost & (before >= 0)
    usable[usable] = host.thread[nodes[before[usable]]] == host.thread[nodes[usable]]
    origin[nodes[usable]] = nodes[before[usable]]
    rest = (node >= 0) & (node != np.arange(len(host))) & ~inside
    origin[rest] = node[rest]
    return origin


def node_numbers(trace: Trace, nodes: Ints) -> tuple[Ints, Ints]:
    """Sequence number and forward thread of each node; -1 and 0 if it has none.

    torch copies them from the backward call to the node around it, except if a hook runs there first. They
    are then read from the call.
    """
    host = trace.host
    number, forward = host.sequence.copy(), host.forward_thread.copy()
    inner = np.flatnonzero((host.forward_thread > 0) & (host.sequence >= 0) & (host.parent >= 0))
    inner = inner[number[host.parent[inner]] < 0]
    number[host.parent[inner]] = host.sequence[inner]
    forward[host.parent[inner]] = host.forward_thread[inner]
    return number[nodes], forward[nodes]


def _makers(trace: Trace, nodes: Ints) -> Ints:
    return _forward_ops(trace, nodes, *node_numbers(trace, nodes))


def _forward_ops(trace: Trace, nodes: Ints, number: Ints, forward: Ints) -> Ints:
    """The op that made each node: of the forward thread's ops with the largest number up to the node's the
    last one to begin. An op has the number of the first node that it makes; one in place on a view makes
    more (``CopySlices``, and the view's own)."""
    host = trace.host
    made = np.flatnonzero((host.kind == OP) & (host.sequence >= 0) & (host.forward_thread == 0))
    key = (host.thread[made] << THREAD_SHIFT) + host.sequence[made]
    by = np.lexsort((host.start_ns[made], key))
    made, key = made[by], key[by]
    thread = np.full(int(host.forward_thread.max(initial=0)) + 1, trace.main, np.int64)
    known = np.zeros(len(thread), bool)  # of another thread the exact number has to be met
    for torch_number, index in trace.forward_threads.items():
        if 0 <= torch_number < len(thread):
            thread[torch_number], known[torch_number] = index, True
    wanted = (thread[forward] << THREAD_SHIFT) + number
    at = np.searchsorted(key, wanted, "right") - 1
    maker = take(made, at)
    found = take(key, at)
    same = (found == wanted) | (known[forward] & (found >> THREAD_SHIFT == thread[forward]))
    met = same & (number >= 0) & (take(host.start_ns, maker) < host.start_ns[nodes])
    return np.where(met, maker, -1)


def own_phase(trace: Trace, phase: Ints) -> Ints:
    """``phase``, for the own time of each event: that of a node which runs a forward pass again is Python's
    around the operators of that pass, and goes with it."""
    host, marks = trace.host, trace.marks
    ours = np.flatnonzero(trace.names.mask(RECOMPUTE_MARK)[marks.name])
    spans = (host.thread, host.start_ns, host.end_ns)
    inside = nest.covering(spans, host.parent, marks.thread[ours], marks.start_ns[ours])
    found: Ints = phase.copy()
    found[inside[inside >= 0]] = RECOMPUTE
    return found


def _ends(origin: Ints) -> Ints:
    """The event at the end of each chain of origins. Origins are earlier in time, so each chain ends."""
    last = np.where(origin >= 0, origin, np.arange(len(origin)))
    while True:
        further = last[last]
        if np.array_equal(further, last):
            return last
        last = further


def _phases(trace: Trace, node: Ints, inside: Bools) -> Ints:
    host, marks = trace.host, trace.marks
    phase = np.where(node >= 0, BACKWARD, FORWARD)
    ours = trace.names.mask(RECOMPUTE_MARK)[marks.name]
    spans = (marks.thread[ours], marks.start_ns[ours], marks.end_ns[ours])
    _, parent = nest.depth_and_parent(*spans)
    mark = nest.covering(spans, parent, host.thread, host.start_ns)
    since = take(host.start_ns, node, missing=0)
    begun = take(spans[1], mark)
    phase[(mark >= 0) & (begun >= since)] = RECOMPUTE
    if not ours.any():
        checkpoint = trace.names.containing(CHECKPOINT_NODE)[host.name]
        below = (node >= 0) & ~checkpoint & checkpoint[node]
        phase[below] = RECOMPUTE
        phase[rerun(trace, node, inside, partial(_makers, trace))] = RECOMPUTE
    return phase
