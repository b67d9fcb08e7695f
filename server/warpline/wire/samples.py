"""Where the driving thread was, asked from outside while nothing was recorded.

py-spy reads the interpreter's frames from another process, many times a second. Unlike a trace function and
unlike torch's profiler it costs a line of Python no more than an operator, so these shares have no bias; what
they have is the chance of a count: n of N samples are off by about ``sqrt(n)``.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A second.
RATE = 1000
#: Time sampled, in whole steps: 2,000 samples put a line of 30 % of the step within 1 % of the step.
LEAST_NS, MOST_NS = 2_000_000_000, 12_000_000_000


@dataclass(frozen=True)
class Samples:
    """``lines``: (file, line, count) of the innermost line of the user's; ``total`` with those of none."""

    total: int = 0
    lines: tuple[tuple[str, int, int], ...] = ()
