"""Host time of each line from samples, taken while nothing was recorded.

Under a trace function all Python runs two to three times slower (before 3.12), and each line record and
each operator record adds to the line where it falls. The trace says what happens at a line; the samples say
how long the line takes, if there are enough of them.
"""

from __future__ import annotations

import numpy as np

from warpline.attribution.table import LineTable
from warpline.trace.columns import Floats, Ints
from warpline.wire.samples import Samples

#: Fewer samples than this say less than the trace.
FEWEST = 200
#: The trace is taken to be right within half, and within one sample: what it says of a line that it slowed
#: down most is what is left when nearly all is taken off. So a line with a handful of samples keeps about
#: what the trace says of it, and one with a hundred what the samples say.
OFF, OFF_SAMPLES = 0.5, 1.0


def factors(samples: Samples, table: LineTable, seen: Floats) -> Floats:
    """The factor for the time ``seen`` at each of the host's lines, by line number.

    With m the samples that a line would have by the trace and n those that it has, its estimate is ``m (n +
    a) / (m + a)``. That is the posterior mean of a gamma prior with the mean m and the deviation of ``OFF``
    and ``OFF_SAMPLES``, and so the shape ``a = m² / ((OFF m)² + OFF_SAMPLES²)``. Each function is estimated
    as a whole first, then divided among its lines: a function of many short lines has many samples, though
    each of its lines has few."""
    whole = float(seen.sum())
    if samples.total < FEWEST or whole <= 0:
        return np.ones(len(seen))
    count = np.zeros(len(seen))
    number = {place: at for at, place in enumerate(zip(table.file, table.line, strict=True))}
    for file, line, times in samples.lines:
        count[number.get((file, line), 0)] += times
    count[0] += samples.total - count.sum()  # in no file of the user's
    expected = seen / whole * samples.total
    group = _functions(table)
    of_function = _posterior(_summed(group, count), _summed(group, expected))
    expected = expected * of_function[group]
    factor = _posterior(count, expected)
    wanted, found = _summed(group, expected), _summed(group, expected * factor)
    to_function = np.divide(wanted, found, out=np.ones(len(found)), where=found > 0)
    brought: Floats = (of_function * to_function)[group] * factor
    return brought


def _posterior(count: Floats, expected: Floats) -> Floats:
    """What ``expected`` is multiplied with; 1 where it is nothing."""
    shape = expected**2 / ((OFF * expected) ** 2 + OFF_SAMPLES**2)
    over = expected + shape
    found: Floats = np.divide(count + shape, over, out=np.ones(len(over)), where=over > 0)
    return found


def _summed(group: Ints, column: Floats) -> Floats:
    found: Floats = np.bincount(group, column).astype(np.float64)
    return found


def _functions(table: LineTable) -> Ints:
    """The number of each line's function."""
    numbers: dict[tuple[str, str], int] = {}
    places = zip(table.file, table.function, strict=True)
    return np.array([numbers.setdefault(place, len(numbers)) for place in places], np.int64)
