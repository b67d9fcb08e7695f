"""Closed accounting: each moment of the step belongs to exactly one line.

While the device works, to the line whose work is on the critical path; while it is idle, to the
line the host is at. The account is made over the whole captured window and divided by its steps,
since the host runs ahead of the device. On a GPU, device time is what it is, and the rest of the
unprofiled step is idle time, shared as the idle time seen was. On a CPU all of it is host time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution import device
from warpline.attribution.kernels import Shares
from warpline.attribution.overhead import LEAST_SHARE, Overhead
from warpline.attribution.place import Placed
from warpline.attribution.table import LineTable
from warpline.attribution.timeline import Pieces, complement, overlay, union
from warpline.trace.columns import Floats, Ints, Trace


@dataclass(frozen=True, slots=True)
class Account:
    """Milliseconds per step. ``busy_ms`` and ``idle_ms`` by line number add up to ``step_ms``."""

    step_ms: float
    busy_ms: Floats  # by line: the step's moments in which the device worked for it
    idle_ms: Floats  # by line
    op_ms: Floats  # by host event: its own device time on a CPU (exclusive), zeros on a GPU
    kernel_ms: Floats  # by kernel: its device time
    device_busy_ms: float
    host_scale: float  # host nanoseconds of the whole window, less overhead -> milliseconds per step
    idle: Pieces  # where the idle moments were, raw


def account(
    trace: Trace, table: LineTable, placed: Placed, lines: list[Pieces], shares: Shares,
    cost: Overhead, step_ms: float, window: tuple[int, int],
) -> Account:  # fmt: skip
    make = _on_gpu if trace.on_gpu else _on_cpu
    return make(trace, table, placed, lines, shares, cost, step_ms, window)


def by_line(line: Ints, weight: Ints | Floats, table: LineTable) -> Floats:
    return np.bincount(line, weights=weight, minlength=len(table)).astype(np.float64)


def less(seen: Floats, taken: Floats) -> Floats:
    """What remains of ``seen`` when the profiler's cost is taken off; never quite nothing."""
    return np.maximum(seen - taken, seen * LEAST_SHARE)


def _idle_cost(
    trace: Trace, table: LineTable, placed: Placed, cost: Overhead, window: tuple[int, int]
) -> Floats:
    """Overhead by line that fell outside of operators: line records, and ops that nothing encloses."""
    records, host = trace.records, trace.host
    rows = np.flatnonzero((records.time_ns >= window[0]) & (records.time_ns < window[1]))
    taken = by_line(table.of_location[records.location[rows]], np.full(len(rows), cost.per_line_ns), table)
    top = (host.parent < 0) & (host.start_ns >= window[0]) & (host.start_ns < window[1])
    return taken + by_line(placed.line[top], np.full(int(top.sum()), cost.per_op_ns), table)


def _on_cpu(
    trace: Trace, table: LineTable, placed: Placed, lines: list[Pieces], shares: Shares,
    cost: Overhead, step_ms: float, window: tuple[int, int],
) -> Account:  # fmt: skip
    host = trace.host
    main = lines[trace.main]
    owned = [main.take(main.working)]
    start, end = union(main.start_ns[~main.working], main.end_ns[~main.working])
    for thread, other in enumerate(lines):
        if thread != trace.main and other.working.any():
            part, _ = overlay(other.take(other.working), start, end)
            owned.append(part)
            taken = union(part.start_ns, part.end_ns)
            start, end = _without(start, end, *taken, window)
    idle, _ = overlay(main, start, end)
    children = np.bincount(host.parent[host.parent >= 0], minlength=len(host))
    own = np.zeros(len(host))
    for pieces in lines:
        rows = pieces.working
        own += np.bincount(pieces.op[rows], weights=pieces.length_ns[rows], minlength=len(host))
    corrected = less(own, cost.per_op_ns * children)
    ratio = np.divide(corrected, own, out=np.ones(len(host)), where=own > 0)
    busy = np.zeros(len(table))
    for part in owned:
        busy += by_line(part.line, part.length_ns * ratio[part.op], table)
    waiting = less(by_line(idle.line, idle.length_ns, table), _idle_cost(trace, table, placed, cost, window))
    total = busy.sum() + waiting.sum()
    scale = step_ms / total if total > 0 else 0.0
    return Account(
        step_ms, busy * scale, waiting * scale, corrected * scale, np.zeros(len(trace.kernels)),
        float(busy.sum() * scale), scale, idle,
    )  # fmt: skip


def _without(start: Ints, end: Ints, cut: Ints, until: Ints, window: tuple[int, int]) -> tuple[Ints, Ints]:
    """Disjoint sorted spans less other disjoint sorted spans."""
    outside = complement(start, end, window)
    return complement(*union(np.concatenate([outside[0], cut]), np.concatenate([outside[1], until])), window)


def _on_gpu(
    trace: Trace, table: LineTable, placed: Placed, lines: list[Pieces], shares: Shares,
    cost: Overhead, step_ms: float, window: tuple[int, int],
) -> Account:  # fmt: skip
    kernels = trace.kernels
    begin, until, kernel = device.owners(kernels, window)
    path_ms = np.bincount(kernel, weights=until - begin, minlength=len(kernels)) / 1e6 / trace.steps
    busy = by_line(shares.line, path_ms[shares.kernel] * shares.weight, table)
    busy_ms = float(path_ms.sum())
    idle = _gaps(trace, lines, window)
    seen = by_line(idle.line, idle.length_ns, table)
    taken = np.minimum(_idle_cost(trace, table, placed, cost, window), seen * (1 - LEAST_SHARE))
    waiting = less(seen, taken)
    rest_ms = max(0.0, step_ms - busy_ms)
    if busy_ms + rest_ms > step_ms and busy_ms > 0:
        busy = busy * (step_ms / busy_ms)  # the captured steps' device time alone is longer than the step
    if waiting.sum() > 0:
        waiting = waiting * (rest_ms / waiting.sum())
    else:
        waiting[0] = rest_ms
    span = np.clip(kernels.end_ns, *window) - np.clip(kernels.start_ns, *window)
    main = lines[trace.main]
    host_ns = less(by_line(main.line, main.length_ns, table), _idle_cost(trace, table, placed, cost, window))
    scale = step_ms / host_ns.sum() if host_ns.sum() > 0 else 0.0
    return Account(
        step_ms, busy, waiting, np.zeros(len(trace.host)), span / 1e6 / trace.steps,
        busy_ms, scale, idle,
    )  # fmt: skip


def _gaps(trace: Trace, lines: list[Pieces], window: tuple[int, int]) -> Pieces:
    """Idle moments with the line of the host thread whose next launch ended the gap."""
    kernels, host = trace.kernels, trace.host
    start, end = device.idle(kernels, window)
    following = np.searchsorted(kernels.start_ns, end)
    known = following < len(kernels)
    launch = (
        np.where(known, kernels.launch[np.minimum(following, max(0, len(kernels) - 1))], -1)
        if len(kernels)
        else following * 0 - 1
    )
    thread = np.where(launch >= 0, host.thread[launch], trace.main) if len(host) else launch * 0 + trace.main
    parts = []
    for each in np.unique(thread):
        part, _ = overlay(lines[each], start[thread == each], end[thread == each])
        if each != trace.main:
            part = _where_unknown(part, lines[trace.main])
        parts.append(part)
    return _joined(parts, lines[trace.main])


def _where_unknown(part: Pieces, main: Pieces) -> Pieces:
    """Moments in which a helper thread runs no line of the user's are the main thread's."""
    unknown = part.line == 0
    waiting, _ = overlay(main, *union(part.start_ns[unknown], part.end_ns[unknown]))
    return _joined([part.take(~unknown), waiting], main)


def _joined(parts: list[Pieces], empty: Pieces) -> Pieces:
    if not parts:
        return empty.take(np.zeros(0, np.int64))
    columns = [
        np.concatenate([getattr(part, field) for part in parts])
        for field in ("start_ns", "end_ns", "op", "line", "working")
    ]
    joined = Pieces(*columns)
    return joined.take(np.argsort(joined.start_ns, kind="stable"))
