"""The user's functions on the stack at each line record, and the line that called each of them.

Calls and returns follow from the line records: a new line in another function is a call by the line before
it, and a return records the caller's line again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from warpline.attribution.table import LineTable
from warpline.trace.columns import Bools, Ints, Trace

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: A function on the stack, and the line that called it (0: unknown), both by number.
Frame = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Stacks:
    """``functions``: file and name by number; 0 is none. ``stacks``: outermost frame first; stack 0 is empty.
    ``of_record``: the stack at each line record. ``of_line``: the function of each line."""

    functions: tuple[tuple[str, str], ...]
    stacks: tuple[tuple[Frame, ...], ...]
    of_record: Ints
    of_line: Ints


def stacks(trace: Trace, table: LineTable) -> Stacks | None:
    """The host's call stacks. None if the records do not show returns, as in traces of other tools."""
    if not trace.records.again.any():
        return None
    numbers: dict[tuple[str, str], int] = {("", ""): 0}
    of_line = np.array(
        [numbers.setdefault(key, len(numbers)) for key in zip(table.file, table.function, strict=True)],
        np.int64,
    )
    found, of_record = _followed(
        trace, table.of_location, of_line[table.of_location], _suspended(trace.sources, numbers)
    )
    return Stacks(tuple(numbers), tuple(found), of_record, of_line)


@dataclass
class _Ways:
    """Stacks by number, and the transitions between them; each is stored once."""

    stacks: list[tuple[Frame, ...]] = field(default_factory=lambda: [()])
    numbers: dict[tuple[Frame, ...], int] = field(default_factory=lambda: {(): 0})
    ways: dict[tuple[int, int, int, bool, bool], tuple[int, bool]] = field(default_factory=dict)

    def after(
        self, stack: int, function: int, before_line: int, again: bool, resumes: bool
    ) -> tuple[int, bool]:
        """The stack when ``function`` (0: not the user's) runs after ``before_line``, and whether
        ``function`` is a caller that began before the first record. ``resumes``: it may continue without a
        call (generators)."""
        way = (stack, function, before_line, again, resumes)
        if way not in self.ways:
            before, outer = self.stacks[stack], False
            on_it = [at for at, (one, _) in enumerate(before) if one == function]
            if function == 0:
                now: tuple[Frame, ...] = ()
            elif on_it and on_it[-1] == len(before) - 1:
                now = before
            elif not again or (resumes and not on_it):
                now = (*before, (function, before_line if before else 0))
            elif on_it:
                now = before[: on_it[-1] + 1]
            else:
                now, outer = ((function, 0),), True
            number = self.numbers.setdefault(now, len(self.stacks))
            if number == len(self.stacks):
                self.stacks.append(now)
            self.ways[way] = number, outer
        return self.ways[way]


def _followed(
    trace: Trace, line: Ints, function: Ints, resumes: Bools
) -> tuple[list[tuple[Frame, ...]], Ints]:
    """Stacks (number 0 is empty), and the stack's number at each line record.

    ``line``, ``function``: of each location. ``resumes``: by function.
    """
    records = trace.records
    of = function[records.location]
    ways = _Ways()
    numbers: dict[tuple[int, tuple[Frame, ...]], int] = {(0, ()): 0}
    found = np.zeros(len(of), np.int64)
    for low, high in pairwise(records.first.tolist()):
        # The stack changes only when the function changes.
        turns = low + np.flatnonzero(np.diff(of[low:high], prepend=-1))
        calling = np.where(turns > low, line[records.location[np.maximum(turns - 1, 0)]], 0)
        number, at, begun_before = 0, [], []
        for row, which, by, again in zip(
            turns.tolist(),
            of[turns].tolist(),
            calling.tolist(),
            records.again[turns].tolist(),
            strict=True,
        ):
            number, outer = ways.after(number, which, by, again, bool(resumes[which]))
            if outer:
                begun_before.append((row, (which, int(line[records.location[row]]))))
            at.append(number)
        # A caller that is first seen when it continues was on the stack since the first record.
        keys = []
        for row, number in zip(turns.tolist(), at, strict=True):
            outer_ones = tuple(one for met, one in begun_before if met > row)
            keys.append(numbers.setdefault((number, outer_ones), len(numbers)))
        lengths = np.diff(np.append(turns, high))
        found[low:high] = np.repeat(np.array(keys, np.int64), lengths)
    return [_joined(outer, ways.stacks[stack]) for stack, outer in numbers], found


def _joined(outer: tuple[Frame, ...], stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """``stack`` below the callers that began before the first record. ``outer``: these callers, innermost
    first, each with the line at which it continues, which is the line of its call."""
    functions = [*(function for function, _ in reversed(outer)), *(function for function, _ in stack)]
    known = [line for _, line in reversed(outer)]
    lines = [0, *known, *(line for _, line in stack[1:])]
    return tuple(zip(functions, lines, strict=False))


def _suspended(sources: Mapping[str, str], numbers: Mapping[tuple[str, str], int]) -> Bools:
    """Which functions, by number, are generators or coroutines: they continue without a call."""
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
    """Whether ``function`` has a ``yield`` of its own, outside of nested functions."""
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return False
