"""Samples of the driving thread's lines, taken by another process while nothing was recorded.

Another process reads the interpreter's frames, many times a second. Unlike a trace function and
unlike torch's profiler it costs a line of Python no more than an operator, so these shares have no bias; what
they have is the chance of a count: n of N samples are off by about ``sqrt(n)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FRAME = re.compile(r".* \((.*):(\d+)\)$", re.DOTALL)
#: A second.
RATE = 1000
#: Time sampled, in whole steps.
LEAST_NS, MOST_NS = 2_000_000_000, 12_000_000_000


@dataclass(frozen=True)
class Samples:
    """``lines``: (file, line, count) of the innermost line of the user's; ``total`` with those of none;
    ``why`` there are none."""

    total: int = 0
    lines: tuple[tuple[str, int, int], ...] = ()
    why: str = ""


def py_spy(program: str, pid: int, rate: int, output: str) -> list[str]:
    """The command that samples process ``pid``, ``rate`` times a second, and writes its raw format."""
    # Stopped for each sample, a script that sleeps 85 % of its time was seen asleep in 90 % of them, at any
    # rate; unstopped in 85 %. Frames that changed while they were read are left out.
    command = [program, "record", "--pid", str(pid), "--rate", str(rate), "--nonblocking"]
    return [*command, "--idle", "--threads", "--full-filenames", "--format", "raw", "--output", output]


def stacks(rows: Iterable[str]) -> Iterator[tuple[str, list[tuple[str, int]], int]]:
    """Reads py-spy's raw format, rows of ``frame;frame;... count``.

    Yields the frames as they are written (outermost first), the file and line of each (innermost first), and
    the count."""
    for row in rows:
        stack, _, count = row.rpartition(" ")
        if not count.strip().isdigit():
            continue
        found = (_FRAME.match(frame) for frame in reversed(stack.split(";")))
        yield (
            stack,
            [(place.group(1), int(place.group(2))) for place in found if place is not None],
            int(count),
        )
