"""Input of every stage after the first: the trace, its lines, and the time window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution.beside import beside
from warpline.attribution.overhead import Overhead, overhead
from warpline.attribution.place import Placed, location_of, place
from warpline.attribution.shares import Shares, shares
from warpline.attribution.table import LineTable, line_table
from warpline.attribution.timeline import Pieces, timelines
from warpline.model import steady
from warpline.trace import nest
from warpline.trace.columns import Bools, Floats, Ints, Records, Trace


@dataclass(frozen=True, slots=True)
class Located:
    """``placed``: the line that caused each host event, by number in ``table``. ``changes``: when another
    host event becomes the innermost one of its thread, see ``nest.innermost``."""

    table: LineTable
    placed: Placed
    changes: tuple[Ints, Ints, Ints]


@dataclass(frozen=True, slots=True)
class Scene:
    trace: Trace
    table: LineTable
    placed: Placed
    window: tuple[int, int]  # the captured steps, and the time after them until the device is idle
    step_ms: float  # step time without the profiler, and without a chance collection (``model.steady``)
    profiled_ms: float  # step time with it
    cost: Overhead
    lines: list[Pieces]  # by thread
    shares: Shares
    under: Ints  # for each record of a library line: the user's line that called the library

    def by_line(self, line: Ints, weight: Ints | Floats | Bools) -> Floats:
        """Sums of ``weight`` by line number."""
        return np.bincount(line, weights=weight, minlength=len(self.table)).astype(np.float64)

    def inside(self, start: Ints, end: Ints) -> Bools:
        """Which spans overlap with the window."""
        touched: Bools = (end > self.window[0]) & (start < self.window[1])
        return touched

    def begun(self, start: Ints) -> Bools:
        """Which moments are in the window."""
        within: Bools = (start >= self.window[0]) & (start < self.window[1])
        return within

    def recorded(self, records: Records) -> Bools:
        """Which rows were recorded in the window, each one once: those of drivers are also the main
        thread's."""
        twice = np.isin(records.thread, self.trace.drivers)
        return self.begun(records.time_ns) & ~twice & ~records.inferred

    def estimated(self) -> tuple[Ints, Floats]:
        """Locations in short loops, which were not recorded each time, and their executions per step."""
        found = np.array(self.trace.locations.estimated, np.float64).reshape(-1, 2)
        place = found[:, 0].astype(np.int64)
        known = (place >= 0) & (place < len(self.table.of_location))
        return place[known], found[known, 1]


def locate(trace: Trace) -> Located:
    """The line of each host event of a trace."""
    table = line_table(trace.locations, (*trace.facts.compiled_kernels, *trace.facts.captured_graphs))
    host = trace.host
    with beside() as submit:
        changes = submit(nest.innermost, host.thread, host.start_ns, host.end_ns, host.depth, host.parent)
        placed = place(trace, table)
        return Located(table, placed, changes.result())


def scene(trace: Trace, located: Located) -> Scene:
    """Computes the input of the later stages."""
    table, placed = located.table, located.placed
    window = window_of(trace)
    profiled_ms = (window[1] - window[0]) / 1e6 / trace.steps
    step_ms = steady.mean_ns(trace.manifest, trace.facts) / 1e6 or profiled_ms
    return Scene(
        trace,
        table,
        placed,
        window,
        step_ms,
        profiled_ms,
        overhead(trace, step_ms * 1e6, window),
        timelines(trace, table, placed, window, located.changes),
        shares(trace, table, placed),
        _under(trace, table),
    )


def _under(trace: Trace, table: LineTable) -> Ints:
    records, inside = trace.records, trace.inside
    record = nest.last_before(records.thread, records.time_ns, inside.thread, inside.time_ns)
    return table.of_location[location_of(trace, record)]


def window_of(trace: Trace) -> tuple[int, int]:
    """The captured steps, and the time after them until the device is idle, in ns."""
    begin, end = trace.window_ns
    host, kernels = trace.host, trace.kernels
    launched = kernels.launch >= 0
    if launched.any():
        queued_at = host.start_ns[kernels.launch[launched]]
        inside = (queued_at >= begin) & (queued_at < end)
        end = max(end, int(kernels.end_ns[launched][inside].max(initial=end)))
    return begin, max(end, begin + 1)
