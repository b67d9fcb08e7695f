"""Attributes the calls of compiled code to the lines that it was compiled from.

torch marks each run of a compiled graph in the trace. The calls that a run makes directly (Inductor's
kernels, operators of libraries) belong to the lines that Inductor recorded for them (see
:mod:`warpline.attribution.graphs`). Host time between two calls belongs to the later one. Host time before
the first call and after the last one belongs to the line that runs the compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from warpline.attribution.around import FRAME, Around, operators
from warpline.attribution.graphs import Graphs, Lines, graphs
from warpline.attribution.table import LineTable
from warpline.trace.columns import OP, Bools, Ints, Trace, take

BACKWARD = "CompiledFunctionBackward"

Group = tuple[str, Lines, bool]  # what was called, line numbers, whether by a backward graph


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of compiled graphs, sorted by the region that makes them, then by start."""

    row: Ints  # host event
    region: Ints  # host event
    start_ns: Ints
    group: Ints  # index into groups, -1: unknown
    groups: tuple[Group, ...]
    of_event: Ints  # for each host event: group of the call that it is, or that encloses it
    of_replayed: Ints  # for each kernel: its group, if a CUDA graph replayed it for a region
    for_region: Bools  # such kernels; those without a group belong to the line that runs the region

    def next_group(self, region: Ints, time_ns: Ints) -> Ints:
        """The group of the next call of a region, at moments between its calls. -1 before the first call and
        after the last one."""
        found = np.full(len(region), -1, np.int64)
        if not len(self.row):
            return found
        since = int(self.start_ns.min())
        width = int(self.start_ns.max()) - since + 2
        key = self.region * width + self.start_ns - since
        at = np.searchsorted(key, region * width + np.clip(time_ns - since, 0, width - 1))
        inner = (at > 0) & (at < len(key))
        inner[inner] = (self.region[at[inner]] == region[inner]) & (
            self.region[at[inner] - 1] == region[inner]
        )
        found[inner] = self.group[at[inner]]
        return found


def compiled_calls(trace: Trace, table: LineTable, around: Around, origin: Ints) -> Calls:
    """The calls of all compiled graphs in ``trace``.

    ``origin``: for each host event, the event from which it gets its line; -1: it has its own.
    """
    host = trace.host
    known = graphs(trace.facts.compiled_kernels, table)
    of_replayed = np.full(len(trace.kernels), -1, np.int64)
    if not (around.region >= 0).any() or not (known.all or known.fused):
        nothing = np.zeros(0, np.int64)
        alone = np.zeros(len(of_replayed), bool)
        return Calls(
            nothing, nothing, nothing, nothing, (), np.full(len(host), -1, np.int64), of_replayed, alone
        )
    groups: dict[Group, int] = {}
    frames = _frames(trace, around, origin)
    rows, names = _made(trace, around.made, known)
    region = host.parent[rows]
    group = _groups(trace, frames, (region, names), known.lines, groups)
    replayed = np.flatnonzero(trace.kernels.in_graph & (trace.kernels.launch >= 0))
    replays = around.region[trace.kernels.launch[replayed]]
    replayed, replays = replayed[replays >= 0], replays[replays >= 0]
    by = np.argsort(replays, kind="stable")
    of_replayed[replayed[by]] = _groups(
        trace, frames, (replays[by], trace.kernels.name[replayed[by]]), known.replayed, groups
    )
    for_region = np.zeros(len(of_replayed), bool)
    for_region[replayed] = True
    spread = _spread(trace, around.made, rows, group)
    return Calls(rows, region, host.start_ns[rows], group, tuple(groups), spread, of_replayed, for_region)


def _groups(
    trace: Trace,
    frames: tuple[Ints, Bools],
    called: tuple[Ints, Ints],
    lines_of: Callable[[Sequence[str], str, bool], list[Lines]],
    groups: dict[Group, int],
) -> Ints:
    """The group of each call, -1 for none; new groups are added to ``groups``.

    ``called``: region and name of each call, with the calls of one region next to each other.
    """
    region, names = called
    group = np.full(len(region), -1, np.int64)
    of_region, is_backward = frames
    cuts = np.flatnonzero(np.diff(region)) + 1
    for members in np.split(np.arange(len(region)), cuts) if len(region) else ():
        texts = [trace.names[name] for name in names[members].tolist()]
        first = int(region[members[0]])
        frame = int(of_region[first])
        of = trace.names[frame].removeprefix(FRAME) if frame >= 0 else "", bool(is_backward[first])
        for at, name, lines in zip(members.tolist(), texts, lines_of(texts, *of), strict=True):
            if lines:
                group[at] = groups.setdefault((name, lines, of[1]), len(groups))
    return group


def _made(trace: Trace, made: Ints, known: Graphs) -> tuple[Ints, Ints]:
    """The calls that regions make directly, and their names (for a launch, the kernel's name).

    ``made``: such a call at or around each host event.
    """
    host, kernels = trace.host, trace.kernels
    launches = np.flatnonzero((kernels.launch >= 0) & ~kernels.in_graph)[::-1]
    name, works = host.name.copy(), np.zeros(len(host), bool)
    own = kernels.launch[launches]
    name[own[host.kind[own] != OP]] = kernels.name[launches[host.kind[own] != OP]]
    calls = np.unique(made[own])
    while (calls := calls[calls >= 0]).size:  # a region may run inside a call of another
        works[calls] = True
        calls = np.unique(take(made, host.parent[calls]))
    listed = {called for graph in known.all for called in graph.count}
    expected = np.array([called in listed for called in trace.names])
    direct = made == np.arange(len(host))
    rows = np.flatnonzero(direct & (works | expected[name]))
    rows = rows[np.argsort(host.parent[rows], kind="stable")]
    return rows, name[rows]


def _frames(trace: Trace, around: Around, origin: Ints) -> tuple[Ints, Bools]:
    """The compiled frame of each host event, as the name of torch's range (-1: none), and whether the event
    is in the frame's backward pass."""
    host = trace.host
    holder = np.where(around.compiled >= 0, around.compiled, np.arange(len(host)))
    backward = operators(trace, BACKWARD)[holder]
    node = around.node[holder]
    made = np.where(backward & (node >= 0), take(origin, node), holder)
    return take(host.name, take(around.frame, made)), backward


def _spread(trace: Trace, made: Ints, rows: Ints, group: Ints) -> Ints:
    """The group of each host event, or of the call around it; -1 for none."""
    chosen = np.zeros(len(trace.host), bool)
    of = np.full(len(trace.host), -1, np.int64)
    chosen[rows] = True
    of[rows] = group
    call = made.copy()
    while (others := np.flatnonzero((call >= 0) & ~take(chosen, call))).size:
        call[others] = take(made, trace.host.parent[call[others]])
    return take(of, call)
