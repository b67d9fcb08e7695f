"""What a line's time is made of below the user's files: lines of libraries, with their modules.

Each piece of the account carries the library's line that it ran for (0: none), so the entries of a line
add up to the line. An operator goes to the library's line that called it, a backward one to the line of its
forward operator, idle time to where the host was.
"""

from __future__ import annotations

import numpy as np

from warpline.attribution.accounting import Account, launched_inside
from warpline.attribution.scene import Scene
from warpline.attribution.waits import closing_wait, sync_calls
from warpline.model.report import Inside
from warpline.trace.columns import Floats, Ints

#: Entries below this are added to the line's own: a step has hundreds of lines that take next to nothing.
LEAST_MS = 1e-5


def inside_table(scene: Scene, accounted: Account) -> dict[int, tuple[Inside, ...]]:
    """Entries by line number, longest first, for lines that have time in a library."""
    trace = scene.trace
    if not len(trace.inside.location):
        return {}
    of, place = _merged(scene), _places(scene)
    rows: dict[int, list[tuple[int, tuple[float, float, float, float]]]] = {}
    parts = accounted.parts
    step = _sums(parts.line, of[parts.inside], parts.step_ms)
    if trace.on_gpu:
        shares = scene.shares
        ms = accounted.kernel_ms[shares.kernel] * shares.weight
        device = _sums(shares.line, of[launched_inside(scene)], ms)
    else:
        device = _sums(scene.placed.line, of[scene.placed.inside], accounted.op_ms)
    begun = np.flatnonzero(~trace.inside.again & scene.begun(trace.inside.time_ns))
    calls = _sums(scene.under[begun], of[trace.inside.location[begun]], np.ones(len(begun)) / trace.steps)
    host = scene.trace.host
    waits = sync_calls(trace) & scene.begun(host.start_ns)
    waits[closing_wait(trace)] = False
    lengths: Floats = (host.end_ns - host.start_ns)[waits] * np.float64(accounted.host_scale)
    sync = _sums(scene.placed.line[waits], of[scene.placed.inside[waits]], lengths)
    for line in {line for line, entry in (*step, *device) if entry}:
        rows[line] = []
    for line, entry in dict.fromkeys((*step, *device)):
        if line and line in rows:
            key = (line, entry)
            first, second, third, fourth = (sums.get(key, 0.0) for sums in (step, device, calls, sync))
            rows[line].append((entry, (first, second, third, fourth)))
    out = {}
    for line, entries in rows.items():
        own, kept = (0.0, 0.0), []
        for entry, (step_ms, device_ms, times, sync_ms) in entries:
            if entry == 0 or max(step_ms, device_ms) < LEAST_MS:
                own = own[0] + step_ms, own[1] + device_ms
            else:
                module, file, number, function, text = place[entry]
                kept.append(Inside(module, file, number, function, step_ms, device_ms, times, sync_ms, text))
        if max(own) > 0:
            table = scene.table
            kept.append(Inside(None, table.file[line], table.line[line], table.function[line], *own, 0.0))
        out[line] = tuple(sorted(kept, key=lambda each: (-each.step_ms, each.file, each.line)))
    return out


def _merged(scene: Scene) -> Ints:
    """For each location the first one of the same file, line and module: functions may share a line."""
    first: dict[tuple[int, int, int], int] = {}
    numbers = [
        first.setdefault((file, line, module), at)
        for at, (file, line, _, module) in enumerate(scene.trace.libraries.locations)
    ]
    return np.array(numbers, np.int64)


def _places(scene: Scene) -> list[tuple[str | None, str, int, str, str]]:
    table = scene.trace.libraries

    def named(of: tuple[str, ...], at: int) -> str:
        return of[at] if 0 <= at < len(of) else ""

    return [
        (
            table.modules[module] if 0 <= module < len(table.modules) else None,
            named(table.files, file),
            line,
            named(table.functions, function),
            named(table.texts, at),
        )
        for at, (file, line, function, module) in enumerate(table.locations)
    ]


def _sums(line: Ints, entry: Ints, weight: Floats) -> dict[tuple[int, int], float]:
    """Sums of ``weight`` by (line number, entry)."""
    if not len(line):
        return {}
    width = int(entry.max()) + 1
    keys, at = np.unique(line * width + entry, return_inverse=True)
    sums = np.bincount(at, weights=weight, minlength=len(keys))
    return {divmod(key, width): value for key, value in zip(keys.tolist(), sums.tolist(), strict=True)}
