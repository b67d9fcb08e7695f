"""The function that was running when a trace began: the line of each of its calls.

torch names every frame by the line of its ``def``, but a frame that is on the stack when recording begins
by the line that it was at: ``prof.step()``, or ``with profile(...)``. What a training loop does itself would
all be there. Its calls are events with names, and the source has them in their order.
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
_NEXT = "__next__"  # what a for loop calls

Site = tuple[str, int]  # what is called, line


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
    """The line of each of ``called`` (frames as torch names them, in order of time).

    They were called by the function that was at line ``at``, the first one (the profiler) from there. Sites
    are gone through in the order in which Python comes to them, from the loop's end back to its beginning.
    A call of another name than that in the source (a module, a decorated function) is the next one that no
    other call answers to.
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
    """The next call with a name in the source, for each call, and how many calls come before that."""
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
    """The calls of the innermost loop around line ``at``, else of what comes after it in its function."""
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
    except RecursionError:  # a sum of a thousand terms is as deep
        return []
    return [site for site in sites if not isinstance(getattr(builtins, site[0], None), type)]


def _calls(node: ast.AST) -> Iterator[Site]:
    """Calls in the order in which Python makes them, without those in nested functions."""
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
    """Whose iterator is written in C: it leaves no event."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
