"""Measures the cost of one line record in this interpreter, on this machine, under its present load.

It is measured right after a capture, with the callback that made the records. The slowdown of the captured
steps does not show it, because the windows with and without the profiler also differ by the machine's noise.
A line record costs five times as much as a short line of Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ..inside.locations import LibraryLines
from ..lines.locations import Locations
from ..lines.names import QualifiedNames
from ..lines.userfiles import UserFiles

if TYPE_CHECKING:
    from ..patches import Function

PASSES = 15  # the median of so many
LINES = 600  # per pass: 0.2 ms, short compared with the scheduler's time slice

_FILE = __file__ + ": short lines"
_TEXT = """
def short_lines(times):
    for at in times:
        here = at
        there = here

def short_calls(times):
    calls(times)
"""
_LIBRARY = __file__ + ": short function"
_LIBRARY_TEXT = """
def short(at):
    here = at
    there = here
    return there

def calls(times):
    for at in times:
        short(at)
"""


class OnlyThese(UserFiles):
    """Stands in for the user's files: only the lines that are timed are the user's."""

    def __missing__(self, filename: str) -> str | None:
        found = self[filename] = filename if filename == _FILE else None
        return found


def line_record_ns(line_events: Callable[[Locations], Any]) -> float | None:
    """Nanoseconds that an event of ``line_events`` (Tracing or Monitoring) adds to a line.

    None where it cannot be measured: the script has a trace function of its own.
    """
    if sys.gettrace() is not None:
        return None
    added, records, _ = _added(line_events, Locations(OnlyThese((), ()), QualifiedNames()), "short_lines")
    return max(0.0, added / max(1.0, records))


def library_record_ns(
    torch: Any, line_events: Callable[[Locations], Any], line_ns: float | None
) -> float | None:
    """The same for a line of a library's, its share of the calls and returns included; ``line_ns`` is what
    one of the user's takes."""
    if sys.gettrace() is not None or line_ns is None:
        return None
    locations = Locations(OnlyThese((), ()), QualifiedNames())
    locations.library = LibraryLines(torch, locations)
    locations.library.files[_LIBRARY] = _LIBRARY
    added, records, of_library = _added(line_events, locations, "short_calls")
    return max(line_ns, (added - line_ns * records) / max(1.0, of_library))


def _added(
    line_events: Callable[[Locations], Any], locations: Locations, name: str
) -> tuple[float, float, float]:
    """Nanoseconds that recording adds to a function of ours, and its records: of the user's, of libraries."""
    room: dict[str, Any] = {}
    exec(compile(_LIBRARY_TEXT, _LIBRARY, "exec"), room)
    exec(compile(_TEXT, _FILE, "exec"), room)
    work, times = room[name], range(LINES // 3)
    lines = line_events(locations)
    lines.start()
    try:
        work(times)
        mine = locations.records()
        before, before_library = len(mine.pairs), len(mine.library)
        watched = [_spent(work, times) for _ in range(PASSES)]
    finally:
        lines.stop()
    plain = [_spent(work, times) for _ in range(PASSES)]
    return (
        sorted(watched)[PASSES // 2] - sorted(plain)[PASSES // 2],
        (len(mine.pairs) - before) / 2 / PASSES,
        (len(mine.library) - before_library) / 2 / PASSES,
    )


def _spent(work: Function, times: range) -> int:
    begin = perf_counter_ns()
    work(times)
    return perf_counter_ns() - begin
