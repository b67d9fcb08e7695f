"""Attributes Dynamo's own bytecode to the line that called the compiled function.

The bytecode that Dynamo writes for a function (it checks the guards and calls the graph) has a single line,
the function's first: its ``def``, or a decorator above it. Python records no event for that line when it
calls a function. So a record of a function's first line is Dynamo's, and it is moved to the line of the call.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from warpline.trace.columns import Records
from warpline.wire.run import Locations


def at_callers(records: Records, locations: Locations, sources: dict[str, str]) -> Records:
    """``records``; those of a function's first line get the line that called the function."""
    first = np.array(_first_lines(locations, sources) or [False])
    rows = np.flatnonzero(first[records.location]) if len(records.location) else records.location
    if not len(rows):
        return records
    location, again = records.location.copy(), records.again.copy()
    called: dict[tuple[int, int], int] = {}  # (thread, function's first line) -> where it was called
    for row in rows.tolist():
        key = (int(records.thread[row]), int(records.location[row]))
        if not again[row] or key not in called:
            begun = row > records.first[key[0]]
            called[key] = int(location[row - 1]) if begun else 0
        location[row], again[row] = called[key], True
    return replace(records, location=location, again=again)


def _first_lines(locations: Locations, sources: dict[str, str]) -> list[bool]:
    """Whether each location is the first line of its function."""
    begun = [_definitions(sources.get(file, "")) for file in locations.files]
    return [
        0 <= file < len(begun)
        and 0 <= function < len(locations.functions)
        and begun[file].get(line) == locations.functions[function].rpartition(".")[2]
        for file, line, function in locations.locations
    ]


def _definitions(text: str) -> dict[int, str]:
    """Names of functions by the 1-based line at which they begin, decorators included."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]): node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
