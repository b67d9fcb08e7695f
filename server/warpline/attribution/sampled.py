"""Host time of each line, from samples taken while nothing was recorded.

Under a trace function all Python runs two to three times slower (before 3.12), and each line record and each
operator record adds to its line. So the trace says what happens at a line, and the samples, if there are
enough, how long the line takes.
"""

from __future__ import annotations

import numpy as np

from warpline.attribution.table import LineTable
from warpline.trace.columns import Floats, Ints
from warpline.wire.samples import Samples

#: With fewer samples, the trace is more accurate.
FEWEST = 200
#: Standard deviation of the trace's estimate: twice the estimate, and one sample, added in quadrature. It is
#: that large because of the lines that tracing slows down most: nearly all of their recorded time is
#: subtracted as overhead. In 44 runs of ``benchmarks/truth`` (22 scripts, Python 3.11 and 3.12) samples that
#: had been held back were most likely with 1.5 or 2, of six values from 0.5 to 4, and of 200, 500 or 1,000
#: samples. With 0.5, large lines were 0.1 to 0.2 % of the step further off (``benchmarks/sample_weight.py``).
OFF, OFF_SAMPLES = 2.0, 1.0


def factors(samples: Samples, table: LineTable, seen: Floats) -> Floats:
    """The factor that corrects the host time ``seen`` of each line, by line number.

    With m the number of samples expected from the trace and n the number of samples taken, the estimate is
    ``m (n + a) / (m + a)``. This is the posterior mean for a gamma prior with mean m and standard deviation
    ``sqrt((OFF m)² + OFF_SAMPLES²)``, so with shape ``a = m² / ((OFF m)² + OFF_SAMPLES²)``. Each function is
    estimated as a whole, then divided among its lines: a function of many short lines has many samples, but
    each line has few."""
    whole = float(seen.sum())
    if samples.total < FEWEST or whole <= 0:
        return np.ones(len(seen))
    count = np.zeros(len(seen))
    number = {place: at for at, place in enumerate(zip(table.file, table.line, strict=True))}
    for file, line, times in samples.lines:
        count[number.get((file, line), 0)] += times
    count[0] += samples.total - count.sum()  # samples outside of the user's files
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
    """Posterior mean divided by ``expected``; 1 where ``expected`` is 0."""
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
