"""What one line record costs in this interpreter, on this machine, as loaded as it is now.

Measured right after a capture, with the very callback that made its records. The slowdown of the
captured steps cannot tell: the windows with and without the profiler differ by the machine's noise
as well, and a line record costs five times what a short line of Python itself does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ..lines.locations import Locations
from ..lines.names import QualifiedNames
from ..lines.userfiles import UserFiles

if TYPE_CHECKING:
    from ..patches import Function

PASSES = 15  # the median of so many
LINES = 600  # of each: 0.2 ms, short beside the time slice after which another process gets its turn

_FILE = __file__ + ": short lines"
_TEXT = """
def short_lines(times):
    for at in times:
        here = at
        there = here
"""


class OnlyThese(UserFiles):
    """As if the lines that are timed were all that the user wrote."""

    def __missing__(self, filename: str) -> str | None:
        found = self[filename] = filename if filename == _FILE else None
        return found


def line_record_ns(line_events: Callable[[Locations], Any]) -> float | None:
    """Nanoseconds that an event of ``line_events`` (Tracing or Monitoring) adds to a line.

    None where it cannot be measured: the script has a trace function of its own.
    """
    if sys.gettrace() is not None:
        return None
    room: dict[str, Any] = {}
    exec(compile(_TEXT, _FILE, "exec"), room)
    work, times = room["short_lines"], range(LINES // 3)
    locations = Locations(OnlyThese((), ()), QualifiedNames())
    lines = line_events(locations)
    lines.start()
    try:
        work(times)
        before = len(locations.records().pairs)
        watched = [_spent(work, times) for _ in range(PASSES)]
    finally:
        lines.stop()
    plain = [_spent(work, times) for _ in range(PASSES)]
    records = (len(locations.records().pairs) - before) / 2 / PASSES
    return max(0.0, (sorted(watched)[PASSES // 2] - sorted(plain)[PASSES // 2]) / max(1.0, records))


def _spent(work: Function, times: range) -> int:
    begin = perf_counter_ns()
    work(times)
    return perf_counter_ns() - begin
