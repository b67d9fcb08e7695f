"""Finds the lines of the calls of a function that was already running when the trace began.

torch names a frame by the line of its ``def``. But a frame that is on the stack when the recording begins is
named by its line at that time: ``prof.step()``, or ``with profile(...)``. All work of a training loop would
be shown at that line. So the recorded calls of the loop are matched, by name and in order, with the calls in
the source.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from warpline.trace.columns import Ints

PROFILER = "torch/profiler/"
_CALLED = re.compile(r"<(?:built-in )?(?:method|function) '?(?P<builtin>\w+)|.+\(\d+\): (?P<function>.+)$")
_NEXT = "__next__"  # called by a for loop

Site = tuple[str, int]  # name of the called function, line


def begun_in(start: Ints, end: Ints, profilers: Ints) -> Ints:
    """The frames of one thread that were on the stack when the first of ``profilers`` began, outermost
    first."""
    if not len(profilers):
        return profilers
    first = profilers[np.argmin(start[profilers])]
    around = np.flatnonzero((start <= start[first]) & (end >= end[first]))
    around = around[around != first]
    outermost_first: Ints = around[np.lexsort((-end[around], start[around]))]
    return outermost_first


def lines_of(source: str, at: int, called: Sequence[str]) -> list[int]:
    """The line of each of ``called`` (frames by torch's names, in order of time).

    The caller is the function at line ``at``, where it made the first call (to the profiler). The call sites
    are visited in execution order; after the loop's end comes its beginning. A call whose name is not in the
    source (a module, a decorated function) gets the next call site that no other call matches.
    """
    sites = _sites(source, at)
    names = [_name(frame) for frame in called]
    known = {name for name, _ in sites}
    seen = {name for name in names if name in known}
    coming = _coming(names, known)
    found, place = [at], sum(line <= at for _, line in sites) % max(1, len(sites))
    for at_name, name in enumerate(names[1:], 1):
        order = [(place + step) % len(sites) for step in range(len(sites))]
        if name in known:
            here = next(number for number in order if sites[number][0] == name)
        elif sites:
            anchor, left = coming[at_name]
            free = list(_until(order, sites, anchor))
            others = [number for number in free if sites[number][0] not in seen]
            here = others[0] if others and left < len(free) else order[0]
        else:
            return [at] * len(names)
        found.append(sites[here][1])
        place = here + 1
    return found


def _name(frame: str) -> str:
    match = _CALLED.match(frame)
    return (match["builtin"] or match["function"]) if match is not None else frame


def _coming(names: Sequence[str], known: set[str]) -> list[tuple[str, int]]:
    """The next call whose name is in the source, for each call, and how many calls come before that one."""
    coming: list[tuple[str, int]] = []
    last, left = "", 0
    for name in reversed(names):
        left += 1
        coming.append((last, left))
        if name in known:
            last, left = name, 0
    return coming[::-1]


def _until(order: list[int], sites: list[Site], name: str) -> Iterator[int]:
    for number in order:
        if sites[number][0] == name:
            return
        yield number


def _sites(source: str, at: int) -> list[Site]:
    """The call sites of the innermost loop around line ``at``; without a loop, those after it in its
    function."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    scope: ast.AST = tree
    loop: ast.AST | None = None
    for node in ast.walk(tree):  # outer nodes come before inner ones
        if not isinstance(node, ast.stmt) or not node.lineno <= at <= (node.end_lineno or at):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            scope, loop = node, None
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and at > node.lineno:
            loop = node
    try:
        sites = [site for site in _calls(loop or scope) if loop is not None or site[1] > at]
    except RecursionError:  # deeply nested source, such as a sum of a thousand terms
        return []
    return [site for site in sites if not isinstance(getattr(builtins, site[0], None), type)]


def _calls(node: ast.AST) -> Iterator[Site]:
    """The calls in the order of execution, without those in nested functions."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        children = node.body
    for child in children:
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _calls(child)
            if isinstance(node, (ast.For, ast.AsyncFor)) and child is node.iter and not _is_range(child):
                yield _NEXT, node.lineno
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node.func.attr, node.func.end_lineno or node.lineno
        elif isinstance(node.func, ast.Name):
            yield node.func.id, node.lineno
        else:
            yield "", node.lineno


def _is_range(node: ast.AST) -> bool:
    """Whether ``node`` is a call of ``range``, whose iterator is written in C and leaves no event."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
