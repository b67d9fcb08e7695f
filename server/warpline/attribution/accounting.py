"""Closed accounting: each moment of the step belongs to exactly one line.

While the device works, the moment belongs to the line whose work is on the critical path. While the device is
idle, it belongs to the line the host is at. The account covers the whole captured window and is divided by
the number of steps, since the host runs ahead of the device.

On a GPU, device time is taken as recorded; where that is more than a whole unprofiled step, without what
other processes took of it (``interrupted.py``). The rest of the unprofiled step is idle time, divided among
the lines as the recorded idle time was. If the device was behind the host during the whole capture, the rest
is device time as well. On a CPU the whole step is host time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpline.attribution import device
from warpline.attribution.interrupted import own_share
from warpline.attribution.others import by_others
from warpline.attribution.overhead import LEAST_SHARE
from warpline.attribution.sampled import factors
from warpline.attribution.scene import Scene
from warpline.attribution.timed_calls import brought_to_calls
from warpline.attribution.timeline import Pieces, overlay, union, without
from warpline.attribution.waits import blocking_copies, closing_wait, sync_calls
from warpline.trace import nest
from warpline.trace.columns import Floats, Ints, occurring, take


@dataclass(frozen=True, slots=True)
class Parts:
    """Milliseconds per step, one row for each piece of the account; the rows add up to the step.

    ``inside``: number of the library's line in ``Trace.libraries``, 0 for none. ``work``: the kernel (on a
    GPU) or host event (on a CPU) that ran. It is -1 in the last rows, which are the idle moments of
    ``Account.idle``, in the same order.
    """

    line: Ints
    inside: Ints
    work: Ints
    step_ms: Floats


@dataclass(frozen=True, slots=True)
class Account:
    """Milliseconds per step. ``busy_ms`` and ``idle_ms`` by line number add up to ``step_ms``."""

    step_ms: float
    busy_ms: Floats  # by line: time in which the device worked for the line
    idle_ms: Floats  # by line
    op_ms: Floats  # by host event: its own device time on a CPU (exclusive), zeros on a GPU
    kernel_ms: Floats  # by kernel: its device time
    device_busy_ms: float
    recorded_busy_ms: float  # the same in a captured step
    interrupted_ms: float  # of that, what other processes took while kernels ran, as far as it is left out
    host_scale: float  # host nanoseconds of the whole window, less overhead -> milliseconds per step
    idle: Pieces  # the recorded idle moments, in ns of the trace
    parts: Parts  # the same step, divided further among the library lines below each line


def account(scene: Scene) -> Account:
    """Divide the window among the lines. The parts add up to its length."""
    return _on_gpu(scene) if scene.trace.on_gpu else _on_cpu(scene)


def less(seen: Floats, taken: NDArray[np.floating[Any]]) -> Floats:
    """``seen`` minus ``taken``, the profiler's overhead; at least ``LEAST_SHARE`` of ``seen`` remains."""
    remaining: Floats = np.maximum(seen - taken, seen * LEAST_SHARE)
    return remaining


def _idle_cost(scene: Scene) -> Floats:
    """Profiler overhead outside of operators, by line: that of line records and of outermost ops. On a CPU
    the main thread is at ``backward()`` between the operators of that pass, whatever lines those are of."""
    records, host, main = scene.trace.records, scene.trace.host, scene.trace.main
    rows = np.flatnonzero(scene.recorded(records))
    at = scene.table.of_location[records.location[rows]]
    top = np.flatnonzero((host.parent < 0) & scene.begun(host.start_ns))
    of_top = scene.placed.line[top]
    if not scene.trace.on_gpu:
        here = np.isin(host.thread[top], (main, *scene.trace.drivers))
        of_top = np.where(here, _main_line(scene, host.start_ns[top]), of_top)
    under = scene.under[scene.recorded(scene.trace.inside)]
    return (
        scene.by_line(at, np.full(len(at), scene.cost.per_line_ns))
        + scene.by_line(of_top, np.full(len(top), scene.cost.per_op_ns))
        + scene.by_line(under, np.full(len(under), scene.cost.per_library_line_ns))
    )


def _on_cpu(scene: Scene) -> Account:
    """Each moment belongs to the operator that runs; if none runs, to the line the host is at. While the main
    thread waits for another one to wake it, that is the other one's line."""
    host, lines = scene.trace.host, scene.lines
    main = lines[scene.trace.main]
    working = [pieces.take(pieces.working) for pieces in lines]
    owned = [working[scene.trace.main]]
    start, end = union(main.start_ns[~main.working], main.end_ns[~main.working])
    for thread, other in enumerate(lines):
        if thread != scene.trace.main and len(working[thread]):
            part, _ = overlay(other, start, end)
            part = part.take(part.working)
            owned.append(part)
            start, end = without(start, end, *union(part.start_ns, part.end_ns), scene.window)
    waited, start, end = by_others(scene, start, end)
    alone, _ = overlay(main, start, end)
    idle = _joined([alone, *waited], main)
    children = np.bincount(host.parent[host.parent >= 0], minlength=len(host))
    own = np.zeros(len(host))
    for pieces in working:
        own += np.bincount(pieces.op, weights=pieces.length_ns, minlength=len(host))
    corrected = less(own, scene.cost.per_op_ns * children)
    ratio = np.divide(corrected, own, out=np.ones(len(host)), where=own > 0)
    recorded = scene.by_line(idle.line, idle.length_ns)
    waiting = less(recorded, _idle_cost(scene))
    remains = np.divide(waiting, recorded, out=np.ones(len(recorded)), where=recorded > 0)
    waits = idle.length_ns * remains[idle.line]
    at = _host_line(scene, idle) if waited else idle.line
    spent = [np.asarray(part.length_ns * ratio[part.op], np.float64) for part in owned]
    of_working = [_host_line(scene, part) for part in working]
    hosts = [of_working[scene.trace.main], *(_host_line(scene, part) for part in owned[1:])]
    # Recorded time of each line on the host: its operators, and the time between them.
    seen = scene.by_line(at, waits) + sum(
        scene.by_line(line, length) for line, length in zip(hosts, spent, strict=True)
    )
    factor = brought_to_calls(scene, factors(scene.trace.facts.samples, scene.table, seen), seen)
    waiting = scene.by_line(idle.line, waits * factor[at])
    spent = [np.asarray(length * factor[line], np.float64) for line, length in zip(hosts, spent, strict=True)]
    own = np.zeros(len(host))
    for pieces, line in zip(working, of_working, strict=True):
        own += np.bincount(pieces.op, weights=pieces.length_ns * factor[line], minlength=len(host))
    corrected = own * ratio
    busy = np.zeros(len(scene.table))
    for part, length in zip(owned, spent, strict=True):
        busy += scene.by_line(part.line, length)
    total = busy.sum() + waiting.sum()
    scale = scene.step_ms / total if total > 0 else 0.0
    return Account(
        scene.step_ms,
        busy * scale,
        waiting * scale,
        corrected * scale,
        np.zeros(len(scene.trace.kernels)),
        float(busy.sum() * scale),
        float(busy.sum() * scale),
        0.0,
        float(scale),
        idle,
        _parts(
            scene,
            _together([part.line for part in owned]),
            _together([part.inside for part in owned]),
            _together([part.op for part in owned]),
            _together(spent) * scale,
            idle,
            waiting * scale,
        ),
    )


def _host_line(scene: Scene, pieces: Pieces) -> Ints:
    """The line of the main thread when each piece begins, also for backward operators."""
    return _main_line(scene, pieces.start_ns)


def _main_line(scene: Scene, when: Ints) -> Ints:
    """The line of the main thread at each of some times."""
    records, main = scene.trace.records, scene.trace.main
    first, last = records.first[main], records.first[main + 1]
    at = nest.latest(records.time_ns[first:last], when)
    location: Ints = take(records.location[first:last], at, missing=0)
    return scene.table.of_location[location]


def _on_gpu(scene: Scene) -> Account:
    """Kernels on the critical path own the busy moments; idle moments go to the host's line."""
    kernels, steps = scene.trace.kernels, scene.trace.steps
    begin, until, kernel = device.owners(kernels, scene.window)
    recorded_ms = np.bincount(kernel, weights=until - begin, minlength=len(kernels)) / 1e6 / steps
    own = own_share(scene.trace, scene.window, scene.step_ms * 1e6)
    path_ms = recorded_ms * own
    busy = scene.by_line(scene.shares.line, path_ms[scene.shares.kernel] * scene.shares.weight)
    busy_ms = float(path_ms.sum())
    gaps, behind = _steady(scene, device.idle(kernels, scene.window))
    idle = _gaps(scene, gaps)
    waiting = less(scene.by_line(idle.line, idle.length_ns), _idle_cost(scene))
    takes_ms = min(busy_ms, scene.step_ms)
    if behind:  # the device sets the pace, but its clock rate changes: the rest of the timed step is its work
        takes_ms = max(takes_ms, scene.step_ms - float(waiting.sum()) / 1e6 / steps)
    if busy_ms > 0:
        busy *= takes_ms / busy_ms
    rest_ms = scene.step_ms - takes_ms
    if waiting.sum() > 0:
        waiting *= rest_ms / waiting.sum()
    else:
        waiting[0] = rest_ms
    span = np.clip(kernels.end_ns, *scene.window) - np.clip(kernels.start_ns, *scene.window)
    main = scene.lines[scene.trace.main]
    host_ns = less(scene.by_line(main.line, main.length_ns), _idle_cost(scene)).sum()
    return Account(
        scene.step_ms,
        busy,
        waiting,
        np.zeros(len(scene.trace.host)),
        span * own / 1e6 / steps,
        max(busy_ms, takes_ms),
        float(recorded_ms.sum()),
        float(recorded_ms.sum()) - busy_ms,
        float(scene.step_ms / host_ns) if host_ns > 0 else 0.0,
        idle,
        _parts(
            scene,
            scene.shares.line,
            launched_inside(scene),
            scene.shares.kernel,
            path_ms[scene.shares.kernel] * scene.shares.weight * (takes_ms / busy_ms if busy_ms > 0 else 0.0),
            idle,
            waiting,
        ),
    )


def launched_inside(scene: Scene) -> Ints:
    """The library line that launched the kernel of each row of the shares; 0 for none."""
    launch = scene.trace.kernels.launch[scene.shares.kernel]
    of_line = take(scene.placed.line, launch) == scene.shares.line
    return np.where(of_line, take(scene.placed.inside, launch, missing=0), 0)


def _parts(
    scene: Scene, line: Ints, inside: Ints, work: Ints, busy_ms: Floats, idle: Pieces, idle_ms: Floats
) -> Parts:
    """Rows for ``busy_ms`` (already by row), and for ``idle_ms`` (by line), which is divided among the idle
    moments of each line by their length, less the overhead of the library line records in them."""
    of, size = scene.trace.inside, len(scene.trace.libraries.locations)
    spent = np.bincount(idle.inside, weights=idle.length_ns, minlength=size).astype(np.float64)
    records = np.bincount(of.location[scene.recorded(of)], minlength=size)
    remains = less(spent, records * scene.cost.per_library_line_ns)
    length = idle.length_ns * np.divide(remains, spent, out=np.ones(size), where=spent > 0)[idle.inside]
    seen = np.bincount(idle.line, weights=length, minlength=len(idle_ms))
    a_ns = np.divide(idle_ms, seen, out=np.zeros(len(idle_ms)), where=seen > 0)
    return Parts(
        np.concatenate([line, idle.line]),
        np.concatenate([inside, idle.inside]),
        np.concatenate([work, np.full(len(idle), -1)]),
        np.concatenate([busy_ms, length * a_ns[idle.line]]),
    )


def _steady(scene: Scene, idle: tuple[Ints, Ints]) -> tuple[tuple[Ints, Ints], bool]:
    """``idle`` without the moments that exist only because the capture begins with an idle device. Also
    whether the device was otherwise behind the host during the whole capture.

    The capture begins with an idle device and ends with a host that waits for the device. In the script,
    steps follow each other: a host that is ahead by some time at the end of a step leaves the device that
    much work at the beginning of the next one. So idle time of that length is removed at the beginning, up to
    the first moment in which the host waits for the device.
    """
    trace, (start, end) = scene.trace, idle
    closing = closing_wait(trace)
    if not len(closing) or not len(start):
        return idle, False
    ahead = scene.window[1] - int(trace.host.start_ns[closing[0]])
    waited = _first_wait(scene)
    reach = np.cumsum(np.clip(np.minimum(end, waited) - start, 0, None))
    filled = min(ahead, int(reach[-1]))
    at = int(np.searchsorted(reach, filled))
    until = int(min(end[at], waited) - (reach[at] - filled)) if filled > 0 else scene.window[0]
    start = np.maximum(start, until)
    kept = end > start
    return (start[kept], end[kept]), ahead > filled and waited >= scene.window[1]


def _first_wait(scene: Scene) -> int:
    """Time in ns at which the script first waited for the device in the window; the window's end if never."""
    trace = scene.trace
    waits = sync_calls(trace)
    waits[closing_wait(trace)] = False
    waits[trace.kernels.launch[blocking_copies(trace)]] = True
    begun: Ints = trace.host.start_ns[waits & scene.begun(trace.host.start_ns)]
    return int(begun.min(initial=scene.window[1]))


def _gaps(scene: Scene, idle: tuple[Ints, Ints]) -> Pieces:
    """Idle moments, with the lines of the thread that launched the next kernel."""
    kernels, host, main = scene.trace.kernels, scene.trace.host, scene.trace.main
    start, end = idle
    following = np.searchsorted(kernels.start_ns, end)
    launch = np.concatenate([kernels.launch, [-1]])[following]
    thread = np.concatenate([host.thread, [main]])[launch]
    parts = []
    for each in occurring(thread, len(scene.trace.threads)).tolist():
        part, _ = overlay(scene.lines[each], start[thread == each], end[thread == each])
        if each != main:
            part = _where_unknown(part, scene.lines[main])
        parts.append(part)
    return _joined(parts, scene.lines[main])


def _where_unknown(part: Pieces, main: Pieces) -> Pieces:
    """While a helper thread runs no user line, the moment belongs to the main thread's line."""
    unknown = part.line == 0
    waiting, _ = overlay(main, *union(part.start_ns[unknown], part.end_ns[unknown]))
    return _joined([part.take(~unknown), waiting], main)


def _joined(parts: list[Pieces], empty: Pieces) -> Pieces:
    if not parts:
        return empty.take(np.zeros(0, np.int64))
    if len(parts) == 1 and bool((parts[0].start_ns[1:] >= parts[0].start_ns[:-1]).all()):
        return parts[0]
    columns = [
        np.concatenate([getattr(part, field) for part in parts])
        for field in ("start_ns", "end_ns", "op", "line", "working", "inside")
    ]
    joined = Pieces(*columns)
    return joined.take(np.argsort(joined.start_ns, kind="stable"))


def _together(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """The columns one after the other. One alone is not copied: new memory costs more than what is computed
    in it."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
