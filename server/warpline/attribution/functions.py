"""Inclusive time of the user's functions, and of the lines that call them.

Each piece of the account counts for all functions on the stack at the line record that caused it, and for the
lines that called them. Backward operators count for the functions that ran their forward operator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.autograd import Nodes
from warpline.attribution.ops import grouped
from warpline.attribution.place import BACKWARD
from warpline.attribution.scene import Scene
from warpline.attribution.stacks import Stacks
from warpline.model.report import Function
from warpline.trace import nest
from warpline.trace.columns import Floats, Ints, take

#: Functions with a shorter inclusive time, in ms per step, are omitted.
LEAST_MS = 1e-6


def function_table(scene: Scene, accounted: Account, on: Stacks | None) -> tuple[Function, ...]:
    """The functions that ran in the captured steps, longest inclusive time first; () without stacks."""
    if on is None:
        return ()
    parts, count = accounted.parts, len(on.functions)
    own = np.bincount(on.of_line[parts.line], weights=parts.step_ms, minlength=count)
    at = take(on.of_record, _cause(scene, accounted), missing=0)
    total = np.zeros(count)
    for stack, function, ms in _summed(at, on.of_line[parts.line], parts.step_ms):
        total[list({one for one, _ in on.stacks[stack]} | {function})] += ms
    found = [
        Function(file, name, float(own[number]), float(total[number]))
        for number, (file, name) in enumerate(on.functions)
        if number and total[number] > LEAST_MS
    ]
    return tuple(sorted(found, key=lambda one: (-one.total_ms, one.file, one.function)))


@dataclass(frozen=True, slots=True)
class Calls:
    """Autograd's work by line number, functions that the line calls included.

    ``nodes``: graph nodes per step. ``unused``: those that no backward pass visits. ``backward``: ms per
    step. ``called``: the user's functions that the line calls, as (file, name)."""

    nodes: Floats
    unused: Floats
    backward: Floats
    called: dict[int, tuple[tuple[str, str], ...]]


def calls_of_lines(scene: Scene, accounted: Account, graph: Nodes, on: Stacks | None) -> Calls:
    """Autograd nodes and backward time of each line, called functions included, and those functions."""
    parts, count = accounted.parts, len(scene.table)
    event = take(scene.trace.kernels.launch, parts.work) if scene.trace.on_gpu else parts.work
    back = take(scene.placed.phase, event, missing=-1) == BACKWARD
    backward: Floats = np.bincount(parts.line[back], weights=parts.step_ms[back], minlength=count).astype(
        np.float64
    )
    nodes, unused = graph.made.copy(), graph.unused.copy()
    if on is None:
        return Calls(nodes, unused, backward, {})
    called: dict[int, set[int]] = {}
    for frames in on.stacks:
        for function, line in frames:
            if line:
                called.setdefault(line, set()).add(function)
    cause = take(on.of_record, _cause(scene, accounted)[back], missing=0)
    made = take(on.of_record, scene.placed.cause[graph.makers], missing=0)
    lines = scene.placed.line[graph.makers]
    each = np.full(len(lines), 1.0 / scene.trace.steps)
    for column, at, of, weight in (
        (backward, cause, parts.line[back], parts.step_ms[back]),
        (nodes, made, lines, each),
        (unused, made[graph.is_unused], lines[graph.is_unused], each[graph.is_unused]),
    ):
        for stack, own, amount in _summed(at, of, weight):
            below = {line for _, line in on.stacks[stack]} - {0, own}  # ``own`` is already counted
            column[list(below)] += amount
    return Calls(
        *(nodes, unused, backward),
        {line: tuple(on.functions[one] for one in sorted(ones)) for line, ones in called.items()},
    )


def _summed(at: Ints, numbers: Ints, weight: Floats) -> list[tuple[int, int, float]]:
    """``(stack, number, sum of weights)`` for each pair that occurs."""
    keys, which = grouped((at, numbers))
    sums = np.bincount(which, weights=weight, minlength=keys.shape[1])
    return list(zip(*keys.tolist(), sums.tolist(), strict=True))


def _cause(scene: Scene, accounted: Account) -> Ints:
    """The line record that caused each piece of the account; -1 if unknown."""
    trace, parts = scene.trace, accounted.parts
    host, records = trace.host, trace.records
    event = take(trace.kernels.launch, parts.work) if trace.on_gpu else parts.work.copy()
    cause = take(scene.placed.cause, event)
    # Pieces without a record on their own thread, and idle time, get the main thread's current record.
    when = take(host.start_ns, event, missing=0)
    idle = len(accounted.idle)
    if idle:
        when[-idle:] = accounted.idle.start_ns
    rows = np.flatnonzero((cause < 0) & (when > 0))
    main = np.full(len(rows), trace.main, np.int64)
    cause[rows] = nest.last_before(records.thread, records.time_ns, main, when[rows])
    return cause
