"""Counters of a running process: local variables that grow by the same number again and again, as ``step`` in
``for step, batch in enumerate(loader)``. They say how long one iteration of their loop takes."""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from warpline.capture.mainthread import main_thread

#: Iterations between the first and the last look. The estimate is off by at most one of them: 5 %.
FEWEST_TURNS = 20
#: How often a process is looked at, and in how many successive looks a counter must not fall. (It starts
#: again with each epoch.)
LOOKS, FEWEST_LOOKS = 12, 6
#: Gaps between looks, relative to the mean gap. With even gaps a steady counter would grow by the same number
#: each time, and that number would be taken for one iteration.
GAPS = (0.62, 1.31, 0.83, 1.17, 0.71, 1.43, 0.93)
_WHOLE = re.compile(r"-?\d+")
#: ``step += 1`` and ``step = step + 1``, as ``ast.unparse`` writes them.
_COUNTS = re.compile(r"(\w+) \+= \d+|(\w+) = \2 \+ \d+")

#: (file, function, name) -> value.
Values = dict[tuple[str, str, str], int]


@dataclass(frozen=True, slots=True)
class Counter:
    """``name``, a local variable of ``function``, grows by ``growth`` per iteration of ``turn_ms``."""

    file: str
    function: str
    name: str
    growth: int
    turns: int
    turn_ms: float


def look(program: str, pid: int, timeout_s: float, users: Callable[[str], bool]) -> tuple[float, Values]:
    """``(at, values)``: the time of the look (``time.monotonic()``, seconds) and the integers in local
    variables of the main thread, in files that ``users`` accepts. Empty if py-spy (``program``) fails."""
    command = [program, "dump", "--pid", str(pid), "--locals", "--json", "--nonblocking", "--full-filenames"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
        )
        threads = json.loads(done.stdout) if done.returncode == 0 else []
    except (subprocess.TimeoutExpired, ValueError):
        threads = []
    at = (began + time.monotonic()) / 2
    return at, values(threads, pid, users)


def values(threads: Any, pid: int, users: Callable[[str], bool]) -> Values:
    """The integers in the output of ``py-spy dump --json``. If a function is on the stack twice, its inner
    call counts."""
    found: Values = {}
    main = main_thread({_number(thread): thread.get("thread_name") or "" for thread in threads}, pid)
    for thread in threads:
        if _number(thread) != main:
            continue
        for frame in thread["frames"]:
            if not users(frame["filename"]):
                continue
            for variable in frame.get("locals") or ():
                said = str(variable.get("repr"))
                if _WHOLE.fullmatch(said):
                    found.setdefault((frame["filename"], frame["name"], variable["name"]), int(said))
    return found


def _number(thread: Any) -> str:
    return str(thread.get("os_thread_id") or thread.get("thread_id"))


def counters(looks: Sequence[tuple[float, Values]]) -> list[Counter]:
    """The counters that grow in several looks in a row, the fastest first."""
    places = dict.fromkeys(place for _, one in looks for place in one)
    found = (
        _counter(place, _longest([(at, one[place]) for at, one in looks if place in one])) for place in places
    )
    return sorted(
        (one for one in found if one is not None), key=lambda one: (-one.turns, one.growth, one.name)
    )


def counted(file: str) -> frozenset[str]:
    """The names that count in the source ``file``: targets of its ``for`` loops, what it adds a literal to.

    A sum (``correct += hits.sum().item()``) grows as well, by 1 as far as a few looks can tell, and would be
    taken for the fastest counter. Empty where the source cannot be read.
    """
    path = Path(file)
    try:
        return frozenset(_counting(ast.parse(path.read_bytes() if path.is_file() else b"")))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _counting(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            yield from (part.id for part in ast.walk(node.target) if isinstance(part, ast.Name))
        elif isinstance(node, (ast.AugAssign, ast.Assign)):
            adds = isinstance(node.value, (ast.Constant, ast.BinOp))
            if adds and (found := _COUNTS.fullmatch(ast.unparse(node))):
                yield found[1] or found[2]


def _longest(points: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """The longest part of ``points`` in which the values do not fall."""
    parts: list[list[tuple[float, int]]] = [[]]
    for point in points:
        if parts[-1] and point[1] < parts[-1][-1][1]:
            parts.append([])
        parts[-1].append(point)
    return max(parts, key=len)


def _counter(place: tuple[str, str, str], points: Sequence[tuple[float, int]]) -> Counter | None:
    if len(points) < FEWEST_LOOKS:
        return None
    growth = math.gcd(*(after - before for (_, before), (_, after) in pairwise(points)))
    turns = (points[-1][1] - points[0][1]) // growth if growth else 0
    if turns < FEWEST_TURNS:
        return None
    return Counter(*place, growth, turns, 1000 * (points[-1][0] - points[0][0]) / turns)
