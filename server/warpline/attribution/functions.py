"""What the user's functions take with all that they call: which of them were on the stack.

Line records tell calls and returns: a new line of another function is a call, a return records the
caller's line again. So the stack of the user's functions is known at every record, and each piece of the
account belongs to all functions on the stack at the record that caused it. Backward operators belong to
the functions that ran their forward operator, as they belong to its line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.scene import Scene
from warpline.model.report import Function
from warpline.trace import nest
from warpline.trace.columns import Bools, Ints, Trace, take

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Functions below this, with all that they call, are left out.
LEAST_MS = 1e-6


def function_table(scene: Scene, accounted: Account) -> tuple[Function, ...]:
    """The functions that were at work in the captured steps, the longest total first. Empty where the records
    do not say what returned (traces made elsewhere)."""
    trace, table, parts = scene.trace, scene.table, accounted.parts
    if not trace.records.again.any():
        return ()
    numbers: dict[tuple[str, str], int] = {("", ""): 0}
    of_line = np.array(
        [numbers.setdefault(key, len(numbers)) for key in zip(table.file, table.function, strict=True)],
        np.int64,
    )
    own = np.bincount(of_line[parts.line], weights=parts.step_ms, minlength=len(numbers))
    sets, of_record = _callers(trace, of_line[table.of_location], _suspended(trace.sources, numbers))
    at = take(of_record, _cause(scene, accounted), missing=0)
    keys, which = np.unique(at * len(numbers) + of_line[parts.line], return_inverse=True)
    sums = np.bincount(which, weights=parts.step_ms, minlength=len(keys))
    total = np.zeros(len(numbers))
    for key, ms in zip(keys.tolist(), sums.tolist(), strict=True):
        callers, function = divmod(key, len(numbers))
        total[list(sets[callers] | {function})] += ms
    found = [
        Function(file, name, float(own[number]), float(total[number]))
        for (file, name), number in numbers.items()
        if number and total[number] > LEAST_MS
    ]
    return tuple(sorted(found, key=lambda one: (-one.total_ms, one.file, one.function)))


def _cause(scene: Scene, accounted: Account) -> Ints:
    """The line record that caused each piece of the account, -1: none is known."""
    trace, parts = scene.trace, accounted.parts
    host, records = trace.host, trace.records
    event = take(trace.kernels.launch, parts.work) if trace.on_gpu else parts.work.copy()
    cause = take(scene.placed.cause, event)
    # What no record of its own thread caused, and idle time, is where the main thread is.
    when = take(host.start_ns, event, missing=0)
    idle = len(accounted.idle)
    if idle:
        when[-idle:] = accounted.idle.start_ns
    rows = np.flatnonzero((cause < 0) & (when > 0))
    main = np.full(len(rows), trace.main, np.int64)
    cause[rows] = nest.last_before(records.thread, records.time_ns, main, when[rows])
    return cause


@dataclass
class _Stacks:
    """Stacks of functions by number, 0 is the empty one; each is kept once, and so is each way from one to
    another."""

    stacks: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    numbers: dict[tuple[int, ...], int] = field(default_factory=lambda: {(): 0})
    ways: dict[tuple[int, int, bool, bool], tuple[int, bool]] = field(default_factory=dict)

    def after(self, stack: int, function: int, again: bool, resumes: bool) -> tuple[int, bool]:
        """The stack once ``function`` (0: none of the user's) runs; whether that showed a caller that began
        before the records did. ``resumes``: it may go on without having been called (generators)."""
        way = (stack, function, again, resumes)
        if way not in self.ways:
            before, outer = self.stacks[stack], False
            if function == 0:
                now: tuple[int, ...] = ()
            elif before and before[-1] == function:
                now = before
            elif not again or (resumes and function not in before):
                now = (*before, function)
            elif function in before:
                now = before[: len(before) - before[::-1].index(function)]
            else:
                now, outer = (function,), True
            number = self.numbers.setdefault(now, len(self.stacks))
            if number == len(self.stacks):
                self.stacks.append(now)
            self.ways[way] = number, outer
        return self.ways[way]


def _callers(trace: Trace, function: Ints, resumes: Bools) -> tuple[list[frozenset[int]], Ints]:
    """Sets of functions (set 0 is empty), and for each line record which of them is on the stack.

    ``function``: that of each location. ``resumes``: by function.
    """
    records = trace.records
    of = function[records.location]
    stacks = _Stacks()
    numbers: dict[tuple[int, tuple[int, ...]], int] = {(0, ()): 0}
    found = np.zeros(len(of), np.int64)
    for low, high in pairwise(records.first.tolist()):
        # The stack changes only where the function does.
        turns = low + np.flatnonzero(np.diff(of[low:high], prepend=-1))
        number, at, begun_before = 0, [], []
        for row, which, again in zip(
            turns.tolist(), of[turns].tolist(), records.again[turns].tolist(), strict=True
        ):
            number, outer = stacks.after(number, which, again, bool(resumes[which]))
            if outer:
                begun_before.append((row, which))
            at.append(number)
        # A caller that is met when it goes on has been on the stack since the first record.
        keys = []
        for row, number in zip(turns.tolist(), at, strict=True):
            outer_ones = tuple(which for met, which in begun_before if met > row)
            keys.append(numbers.setdefault((number, outer_ones), len(numbers)))
        lengths = np.diff(np.append(turns, high))
        found[low:high] = np.repeat(np.array(keys, np.int64), lengths)
    return [frozenset((*stacks.stacks[stack], *outer)) for stack, outer in numbers], found


def _suspended(sources: Mapping[str, str], numbers: Mapping[tuple[str, str], int]) -> Bools:
    """Which functions, by number, are generators or coroutines: they go on without a call."""
    found = np.zeros(len(numbers), bool)
    for file, text in sources.items():
        if "yield" in text or "async " in text:
            for name in _generators(text):
                if (number := numbers.get((file, name))) is not None:
                    found[number] = True
    for (_, name), number in numbers.items():
        found[number] |= name.endswith("<genexpr>")
    return found


def _generators(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, prefix = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _DEFINITIONS):
                name = prefix + child.name
                if isinstance(child, ast.AsyncFunctionDef) or _yields(child):
                    yield name
                todo.append((child, f"{name}.<locals>."))
            elif isinstance(child, ast.ClassDef):
                todo.append((child, f"{prefix}{child.name}."))
            else:
                todo.append((child, prefix))


def _yields(function: ast.AST) -> bool:
    """Whether it has a ``yield`` of its own, and not one of a function inside."""
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return False
