"""Attributes kernels that a CUDA graph replayed to the lines that were captured.

The runner records each graph's nodes in the order of their capture, and when each graph is replayed. On one
stream the kernels of a replay run in that order; on several they are matched by name and launch shape.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np

from warpline.attribution.table import LineTable
from warpline.trace.columns import Ints, Trace
from warpline.wire import cudagraphs
from warpline.wire.cudagraphs import CapturedGraph, Replay

Key = tuple[int, tuple[int, int, int], tuple[int, int, int], str]  # kind, grid, block, name
_NOTHING = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Line number of each kernel (0: unknown), and whether it belongs to the backward pass."""

    line: Ints
    backward: Ints


def replayed(trace: Trace, table: LineTable) -> Replayed:
    """Line and phase of each kernel that a recorded CUDA graph replayed; 0 where unknown."""
    kernels, facts = trace.kernels, trace.facts
    line = np.zeros(len(kernels), np.int64)
    backward = np.zeros(len(kernels), np.int64)
    if not facts.replays or not facts.captured_graphs:
        return Replayed(line, backward)
    rows = np.flatnonzero(kernels.in_graph & (kernels.launch >= 0))
    rows = rows[np.argsort(kernels.launch[rows], kind="stable")]  # kernels are sorted by start already
    cuts = np.flatnonzero(np.diff(kernels.launch[rows])) + 1
    numbers = {
        (file, number): at for at, (file, number) in enumerate(zip(table.file, table.line, strict=True))
    }
    replays: dict[int, list[Replay]] = defaultdict(list)  # by thread, in order of time
    for replay in facts.replays:
        replays[replay.thread].append(replay)
    known: dict[tuple[int, bytes], tuple[Ints, Ints]] = {}
    for members in np.split(rows, cuts) if len(rows) else ():
        graph = _graph(trace, replays, int(kernels.launch[members[0]]))
        if graph < 0:
            continue
        seen = np.stack([kernels.kind[members], kernels.shape[members], kernels.name[members]])
        key = graph, seen.tobytes()
        if key not in known:
            known[key] = _lines(facts.captured_graphs[graph], _keys(trace, members), numbers)
        line[members], backward[members] = known[key]
    return Replayed(line, backward)


def _graph(trace: Trace, replays: dict[int, list[Replay]], launch: int) -> int:
    """The graph that a launch replays; -1 if unknown."""
    mine = replays[trace.threads[int(trace.host.thread[launch])]]
    at = bisect_right(mine, int(trace.host.start_ns[launch]), key=lambda replay: replay.time_ns) - 1
    return mine[at].graph if at >= 0 and mine[at].graph < len(trace.facts.captured_graphs) else -1


def _keys(trace: Trace, members: Ints) -> list[Key]:
    keys: list[Key] = []
    kernels = trace.kernels
    columns = (kernels.kind[members], kernels.shape[members], kernels.name[members])
    for kind, shape, name in zip(*(column.tolist() for column in columns), strict=True):
        launched = trace.launch_shapes[shape]
        plain = cudagraphs.COPY if kind == 1 else cudagraphs.SET if kind == 2 else cudagraphs.KERNEL
        keys.append((plain, launched.grid or _NOTHING, launched.block or _NOTHING, trace.names[name]))
    return keys


def _lines(graph: CapturedGraph, seen: list[Key], numbers: dict[tuple[str, int], int]) -> tuple[Ints, Ints]:
    """Line number of each kernel of a replay, and whether it belongs to the backward pass."""
    of_line = [numbers.get((file, number), 0) for file, number, _ in graph.lines]
    # Only names on both sides are compared (old drivers give none).
    common = {node.name for node in graph.nodes} & {key[3] for key in seen}
    seen = [(*key[:3], key[3] if key[3] in common else "") for key in seen]
    captured: list[Key] = [
        (node.kind, node.grid, node.block, node.name if node.name in common else "") for node in graph.nodes
    ]
    if captured == seen:
        places = list(range(len(seen)))
    else:
        left: dict[Key, deque[int]] = defaultdict(deque)
        for at, key in enumerate(captured):
            left[key].append(at)
        places = [left[key].popleft() if left[key] else -1 for key in seen]
    nodes = [graph.nodes[at] if at >= 0 else None for at in places]
    lines = [of_line[node.line] if node is not None and node.line >= 0 else 0 for node in nodes]
    return np.array(lines, np.int64), np.array(
        [node is not None and node.backward for node in nodes], np.int64
    )
