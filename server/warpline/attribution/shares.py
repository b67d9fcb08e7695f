"""The lines that each kernel belongs to.

A kernel belongs to the line of its launch. A kernel that a compiler fused from several lines (found by its
position among the calls of its graph, else by its name) belongs to all of them in equal parts, as the trace
does not show each line's part; these lines are shown as a group. A kernel that a CUDA graph replays has no
launch of its own. It belongs to the line that was captured, or to the compiled code that recorded the graph.
If neither is known, it is unattributed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution.compiled import Group as Called
from warpline.attribution.graphs import graphs
from warpline.attribution.place import BACKWARD, FORWARD, Placed
from warpline.attribution.replayed import replayed
from warpline.attribution.table import LineTable
from warpline.model.profile import Group
from warpline.trace.columns import Floats, Ints, Trace, take


@dataclass(frozen=True, slots=True)
class Shares:
    """One row for each pair of a kernel and a line that it belongs to; a kernel's weights add up to 1."""

    kernel: Ints
    line: Ints
    phase: Ints
    weight: Floats
    group: Ints  # index into groups, -1: none
    groups: tuple[Called, ...]


def shares(trace: Trace, table: LineTable, placed: Placed) -> Shares:
    """The lines of each kernel, with weights that add up to 1."""
    kernels = trace.kernels
    launched = kernels.launch >= 0
    own = launched & (~kernels.in_graph | placed.calls.for_region)
    line = np.where(own, take(placed.line, kernels.launch), 0)
    phase = take(placed.phase, kernels.launch, missing=FORWARD)
    captured = replayed(trace, table)
    line = np.where(captured.line > 0, captured.line, line)
    phase = np.where(captured.line > 0, np.where(captured.backward > 0, BACKWARD, FORWARD), phase)
    of_kernel, groups = _groups(trace, table, placed)
    plain = np.flatnonzero(of_kernel < 0)
    rows = [(plain, line[plain], phase[plain], np.ones(len(plain)), np.full(len(plain), -1))]
    for at, (_, members, backward) in enumerate(groups):
        mine = np.flatnonzero(of_kernel == at)
        each = np.repeat(mine, len(members))
        its_phase = np.where(phase[each] == FORWARD, BACKWARD if backward else FORWARD, phase[each])
        rows.append(
            (
                each,
                np.tile(members, len(mine)),
                its_phase,
                np.full(len(each), 1 / len(members)),
                np.full(len(each), at),
            )
        )
    kernel, lines, phases, weight, group = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Shares(kernel, lines, phases, weight, group, groups)


def _groups(trace: Trace, table: LineTable, placed: Placed) -> tuple[Ints, tuple[Called, ...]]:
    """The group of each kernel (-1: none), and the groups."""
    kernels, calls = trace.kernels, placed.calls
    of_kernel = calls.of_replayed.copy()
    launched = (kernels.launch >= 0) & ~kernels.in_graph
    of_kernel[launched] = calls.of_event[kernels.launch[launched]]
    fused = graphs(trace.facts.compiled_kernels, table)
    numbers = {group: at for at, group in enumerate(calls.groups)}
    # Kernels outside of torch's ranges for compiled regions are found by their name only.
    for at in np.flatnonzero(of_kernel < 0).tolist() if fused.fused else ():
        name = trace.names[kernels.name[at]]
        for backward in (False, True):
            if lines := fused.fused.get((name, backward)):
                of_kernel[at] = numbers.setdefault((name, lines, backward), len(numbers))
                break
    return of_kernel, tuple(numbers)


def group_table(table: LineTable, shared: Shares, kernel_ms: Floats) -> tuple[Group, ...]:
    """The groups for the profile. ``device_ms``: all launches of the group together."""
    time = np.zeros(len(shared.groups))
    inside = shared.group >= 0
    np.add.at(time, shared.group[inside], kernel_ms[shared.kernel[inside]] * shared.weight[inside])
    return tuple(
        Group(name, tuple((table.file[line], table.line[line]) for line in lines), float(ms), backward)
        for (name, lines, backward), ms in zip(shared.groups, time.tolist(), strict=True)
    )
