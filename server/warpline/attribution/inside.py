"""Divides the time of a user's line among the library lines that it called, with their modules.

Each piece of the account has the library line that it ran for (0: none), so the entries of a user line add up
to the line's time. An operator belongs to the library line that called it, a backward operator to that of its
forward operator, and idle time to the library line the host is at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpline.attribution.accounting import Account, launched_inside
from warpline.attribution.named import clipping, part_names
from warpline.attribution.place import BACKWARD, FORWARD, RECOMPUTE, own_phase
from warpline.attribution.scene import Scene
from warpline.attribution.tokens import Generated
from warpline.attribution.waits import closing_wait, sync_calls, waiting_reads
from warpline.model.report import Inside
from warpline.trace.columns import Floats, Ints

#: Entries below this, in ms per step, are added to the user line's own: a step has hundreds of tiny ones.
LEAST_MS = 1e-5


def inside_table(
    scene: Scene, accounted: Account, tokens: Sequence[Generated] = ()
) -> dict[int, tuple[Inside, ...]]:
    """Entries by user line number, longest first, for lines with time in a library."""
    trace = scene.trace
    if not len(trace.inside.location):
        return {}
    of, place = _merged(scene), _places(scene)
    parts = accounted.parts
    step = _sums(parts.line, of[parts.inside], parts.step_ms)
    waited = parts.work < 0
    idle = _sums(parts.line[waited], of[parts.inside[waited]], parts.step_ms[waited])
    if trace.on_gpu:
        shares = scene.shares
        line, entry, phase = shares.line, of[launched_inside(scene)], shares.phase
        ms = accounted.kernel_ms[shares.kernel] * shares.weight
    else:
        line, entry, phase = scene.placed.line, of[scene.placed.inside], own_phase(trace, scene.placed.phase)
        ms = accounted.op_ms
    device = _sums(line, entry, ms)
    phases = [_sums(line, entry, ms * (phase == each)) for each in (FORWARD, BACKWARD, RECOMPUTE)]
    begun = np.flatnonzero(~trace.inside.again & scene.begun(trace.inside.time_ns))
    calls = _sums(scene.under[begun], of[trace.inside.location[begun]], np.ones(len(begun)) / trace.steps)
    host = scene.trace.host
    waits = (sync_calls(trace) | waiting_reads(trace)) & scene.begun(host.start_ns)
    waits[closing_wait(trace)] = False
    lengths: Floats = (host.end_ns - host.start_ns)[waits] * np.float64(accounted.host_scale)
    sync = _sums(scene.placed.line[waits], of[scene.placed.inside[waits]], lengths)
    passes: list[dict[tuple[int, int], float]] = []
    for within in ([one.prefill for one in tokens], [one.decode for one in tokens]):
        share, worked = np.zeros(len(parts.line)), np.zeros(len(ms))
        for one in within:
            share += one.pieces
            worked += one.work[scene.shares.kernel] if trace.on_gpu else one.work
        passes.append(_sums(parts.line, of[parts.inside], parts.step_ms * share) if tokens else {})
        passes.append(_sums(line, entry, ms * worked) if tokens else {})
    columns = (step, device, calls, sync, *phases, idle, *passes)
    named = part_names(scene, accounted, of[parts.inside])
    rows: dict[int, list[tuple[int, tuple[float, ...]]]] = {
        line: [] for line, entry in (*step, *device) if line and entry
    }
    for number, at in dict.fromkeys((*step, *device)):
        if number in rows:
            rows[number].append((at, tuple(sums.get((number, at), 0.0) for sums in columns)))
    return {number: _entries(scene, number, entries, place, named) for number, entries in rows.items()}


def _entries(
    scene: Scene,
    number: int,
    entries: list[tuple[int, tuple[float, ...]]],
    place: list[tuple[str | None, str, int, str, str]],
    named: dict[tuple[int, int], str],
) -> tuple[Inside, ...]:
    """The library lines below a user's line, longest first. Time outside libraries is the line's own
    entry."""
    own, kept, table = np.zeros(len(entries[0][1])), [], scene.table
    for at, times in entries:
        if at == 0 or max(times[:2]) < LEAST_MS:
            own += times
        else:
            kept.append(_inside(place[at], times, named.get((number, at), "")))
    if max(own[:2]) > 0:
        own[2:4] = 0.0  # the calls and waits of the user's line are shown at that line
        at_home = (None, table.file[number], table.line[number], table.function[number], "")
        kept.append(_inside(at_home, own.tolist(), named.get((number, 0), "")))
    return tuple(sorted(kept, key=lambda each: (-each.step_ms, each.file, each.line)))


def _inside(place: tuple[str | None, str, int, str, str], times: Sequence[float], name: str = "") -> Inside:
    module, file, number, function, text = place
    step_ms, device_ms, calls, sync_ms, forward_ms, backward_ms, recompute_ms, idle_ms, *passes = times
    prefill_ms, prefill_device_ms, decode_ms, decode_device_ms = passes
    part = (name or clipping(text)) if module is None else ""
    return Inside(
        module, file, number, function, step_ms, device_ms, calls, sync_ms, text, forward_ms, backward_ms,
        idle_ms, part, prefill_ms, decode_ms, prefill_device_ms, decode_device_ms, recompute_ms,
    )  # fmt: skip


def _merged(scene: Scene) -> Ints:
    """The first location with the same file, line and module, for each location (functions may share a
    line)."""
    first: dict[tuple[int, int, int], int] = {}
    numbers = [
        first.setdefault((file, line, module), at)
        for at, (file, line, _, module) in enumerate(scene.trace.libraries.locations)
    ]
    return np.array(numbers, np.int64)


def _places(scene: Scene) -> list[tuple[str | None, str, int, str, str]]:
    table = scene.trace.libraries

    def named(names: tuple[str, ...], at: int) -> str:
        return names[at] if 0 <= at < len(names) else ""

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
    width = int(entry.max(initial=0)) + 1
    keys, at = np.unique(line * width + entry, return_inverse=True)
    sums = np.bincount(at, weights=weight, minlength=len(keys))
    return {divmod(key, width): value for key, value in zip(keys.tolist(), sums.tolist(), strict=True)}
