"""Library calls that a compiled graph makes, led back to the lines they were compiled from.

Inductor's own kernels carry their names into the trace (see :mod:`warpline.attribution.shares`); the
matrix products and convolutions that it leaves to libraries appear as plain ops inside the compiled
region. Within a graph they run in the order in which Inductor listed them, so the n-th ``aten::mm``
of a region is the n-th ``extern_kernels.mm`` of its graph. Where the numbers do not agree, nothing is
guessed: the ops stay at the line that runs the compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution.table import LineTable
from warpline.trace import nest
from warpline.trace.columns import OP, Ints, Trace

REGIONS = ("Torch-Compiled Region", "CompiledFunction", "## Call CompiledFxGraph")
#: What Inductor's lists put around an op's name.
_BEFORE, _AFTER = ("extern_kernels.", "torch.ops.aten.", "aten::"), (".default", ".out")


@dataclass(frozen=True, slots=True)
class Nodes:
    """For each host event the autograd node around it and the event whose line it takes (-1: none)."""

    node: Ints
    origin: Ints


def library_calls(trace: Trace, table: LineTable, nodes: Nodes) -> tuple[Ints, Ints]:
    """(ops, line numbers) of the calls that could be led back, outermost ops only."""
    host = trace.host
    nothing = np.zeros(0, np.int64)
    wanted = _wanted(trace, table)
    if not wanted or not len(host):
        return nothing, nothing
    starts = np.array([name.startswith(REGIONS) for name in trace.names])[host.name] & (host.kind == OP)
    region = _outermost(host.parent, host.depth, starts)
    names = {name: at for at, name in enumerate(trace.names)}
    ops, lines = [nothing], [nothing]
    for (name, backward), places in wanted.items():
        rows = np.flatnonzero((host.name == names.get(name, -1)) & (host.kind == OP) & (region >= 0))
        rows = rows[(nodes.node[rows] >= 0) == backward]
        rows = rows[~np.isin(host.parent[rows], rows)]
        found = _in_order(trace, rows, region[rows], nodes, len(places))
        ops.append(rows[found >= 0])
        lines.append(np.array(places, np.int64)[found[found >= 0]])
    return np.concatenate(ops), np.concatenate(lines)


def _wanted(trace: Trace, table: LineTable) -> dict[tuple[str, bool], list[int]]:
    """Line numbers of the library calls of all graphs, in order, by op and direction."""
    numbers = {place: at for at, place in enumerate(zip(table.file, table.line, strict=True))}
    found: dict[tuple[str, bool], list[int]] = {}
    for kernel in trace.facts.compiled_kernels:
        if not kernel.name.startswith(_BEFORE):
            continue
        name = kernel.name
        for prefix in _BEFORE:
            name = name.removeprefix(prefix)
        for suffix in _AFTER:
            name = name.removesuffix(suffix)
        lines = [numbers.get((file, line), 0) for file, line, _ in kernel.lines]
        found.setdefault((f"aten::{name}", kernel.backward), []).append(max(lines, default=0))
    return found


def _outermost(parent: Ints, depth: Ints, chosen: np.ndarray) -> Ints:
    """For each span the outermost chosen one around it (or itself), -1: none."""
    inner = nest.nearest(parent, depth, chosen)
    while True:
        above = np.where(inner >= 0, parent[inner], -1)
        further = np.where(above >= 0, inner[above], -1)
        if not (further >= 0).any():
            return inner
        inner = np.where(further >= 0, further, inner)


def _in_order(trace: Trace, rows: Ints, region: Ints, nodes: Nodes, listed: int) -> Ints:
    """Place of each op in the list of its name; -1 where the list and the runs do not agree."""
    found = np.full(len(rows), -1, np.int64)
    if not len(rows):
        return found
    host = trace.host
    runs, first, of_run = np.unique(region, return_index=True, return_inverse=True)
    rank = np.arange(len(rows)) - first[of_run]
    length = np.bincount(of_run)
    graph = _graphs(trace, runs, nodes)
    offset = 0
    for each in dict.fromkeys(graph[np.argsort(host.start_ns[runs], kind="stable")].tolist()):
        its_runs = graph == each
        size = int(length[its_runs].max())
        whole = its_runs[of_run] & (length[of_run] == size)
        found[whole] = offset + rank[whole]
        offset += size
    return found if offset == listed else np.full(len(rows), -1, np.int64)


def _graphs(trace: Trace, runs: Ints, nodes: Nodes) -> Ints:
    """The graph that each region ran: a region is named for it; a backward one is its forward's."""
    host = trace.host
    node = nodes.node[runs]
    made = np.where(node >= 0, nodes.origin[np.maximum(node, 0)], -1)
    named = np.array([name.startswith(REGIONS[0]) for name in trace.names])[host.name]
    around = nest.nearest(host.parent, host.depth, named)
    forward = np.where(made >= 0, around[np.maximum(made, 0)], runs)
    return np.where(forward >= 0, host.name[np.maximum(forward, 0)], -1)
