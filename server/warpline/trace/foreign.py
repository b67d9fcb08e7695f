"""Traces made elsewhere: Chrome traces of torch.profiler, plain or gzipped, or TensorBoard log folders.

Such a trace has no line events. What it may have is Python frames (``with_stack=True``) or "Call
stack" arguments, and both name a function by the line of its ``def``: costs then stand there, and
the notes say so. Which files are the user's is a guess: those that are neither Python's own nor of
a package that everybody installs.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import msgspec
import numpy as np

from warpline import runs
from warpline.model.problem import Problem
from warpline.model.run import RUN_FORMAT, DeviceFacts, Facts, Locations, Manifest, Request
from warpline.trace import build, nest
from warpline.trace.columns import Trace
from warpline.trace.decode import Chrome, Event, collector_paused, decode
from warpline.trace.frames import Frames
from warpline.trace.read import LOCATION_BITS, Pairs, Parts, assemble

TRACE_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
STEP_MARK = "ProfilerStep#"


def traces(path: Path) -> list[Path]:
    """The trace files that ``path`` stands for: itself, or those of a log folder, oldest first.

    Raises Problem when there is none.
    """
    if not path.exists():
        raise Problem(f"no such file: {path}")
    if path.is_file():
        return [path]
    found = [file for file in path.rglob("*") if file.name.endswith(TRACE_ENDINGS)]
    found = found or [file for file in path.rglob("*") if file.name.endswith((".json", ".json.gz"))]
    if not found:
        raise Problem(f"{path} has no traces (files that end in {' or '.join(TRACE_ENDINGS)})")
    return sorted(found, key=lambda file: (file.stat().st_mtime_ns, file.name))


def read(path: Path) -> Trace:
    """The trace in ``path`` (of a folder the newest). Raises Problem when there is none."""
    with collector_paused():
        chrome, bad = decode(traces(path)[-1])
        groups = build.by_category(chrome)
        notes = [f"{bad} malformed events of the trace were left out"] if bad else []
        return assemble(_parts(chrome, groups, path), chrome, notes, groups)


def import_run(path: Path, run: Path) -> Path:
    """Make the run folder ``run`` of the trace file ``path``; complete or absent, as any run."""
    with collector_paused():
        chrome, _ = decode(path)
        parts = _parts(chrome, build.by_category(chrome), path)
        partial = run.with_name(f".{run.name}.partial")
        try:
            partial.mkdir(parents=True)
            _write(chrome, parts, path, partial)
            partial.rename(run)
        except OSError as error:
            raise Problem(f"cannot write {run}: {error.strerror or error}") from None
    return run


def _write(chrome: Chrome, parts: Parts, path: Path, run: Path) -> None:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b" or data[:64].lstrip()[:1] == b"[":
        data = msgspec.json.encode(chrome)
    (run / "trace.json").write_bytes(data)
    time, thread, location = parts.lines
    pairs = np.stack([time, (thread << LOCATION_BITS) | location], axis=1) if len(time) else np.zeros((0, 2))
    (run / "lines.bin").write_bytes(pairs.astype("<i8").tobytes())
    runs.write_json(run, "facts.json", parts.facts)
    runs.write_json(run, "locations.json", parts.locations)
    runs.write_json(run, "sources.json", parts.sources)
    runs.write_json(run, "manifest.json", parts.manifest)


def _parts(chrome: Chrome, groups: dict[str, list[Event]], path: Path) -> Parts:
    frames = Frames()
    threads = build.Interned()
    notes = [f"made of {path.name}: nothing was measured without the profiler, all times are those under it"]
    if groups.get("python_function"):
        lines = _from_frames(groups["python_function"], chrome.base_ns, frames, threads)
        notes.append(
            "the trace has Python functions and no lines: costs stand at the line of each function's def"
        )
    elif any(map(attrgetter("args.call_stack"), groups.get("cpu_op", []))):
        lines = _from_stacks(groups["cpu_op"], chrome.base_ns, frames, threads)
        notes.append("the trace has call stacks and no lines: costs stand at the line of each function's def")
    else:
        lines = (np.zeros(0, np.int64),) * 3
        notes.append("the trace was made without stacks (with_stack=True): nothing can be led to a line")
    kernels = any(groups.get(category) for category in build.DEVICE_CATEGORIES)
    manifest = Manifest(
        format=RUN_FORMAT,
        created_ns=chrome.base_ns,
        script=frames.script or str(path.resolve()),
        argv=(),
        python_version="unknown",
        torch_version="unknown",
        device=_device(chrome, kernels),
        request=Request(),
        step_source="profiler" if _steps(groups, chrome.base_ns) else "whole",
        timed_ns=(),
        captured=_steps(groups, chrome.base_ns) or _whole(groups, chrome.base_ns),
        line_events="none",
        roots=(),
        rank=int(chrome.distributed.get("rank") or 0),
        world_size=int(chrome.distributed.get("world_size") or 1),
        notes=tuple(notes),
    )
    locations = Locations(
        tuple(frames.files), tuple(frames.functions), tuple(frames.locations), tuple(threads.index)
    )
    return Parts(manifest, Facts(), locations, frames.sources(), lines)


def _from_frames(events: Sequence[Event], base_ns: int, frames: Frames, threads: build.Interned) -> Pairs:
    location = frames.of_names(list(map(attrgetter("name"), events)))
    users = np.flatnonzero(location)
    chosen = [events[at] for at in users.tolist()]
    start, end = build.spans(chosen, base_ns)
    thread = threads.all(list(map(attrgetter("tid"), chosen)))
    by = nest.order(thread, start, end)
    start, end, thread, location = start[by], end[by], thread[by], location[users][by]
    depth, parent = nest.depth_and_parent(thread, start, end)
    who, when, frame = nest.innermost(thread, start, end, depth, parent)
    return when, who, np.where(frame >= 0, location[frame], 0) if len(frame) else frame


def _from_stacks(events: Sequence[Event], base_ns: int, frames: Frames, threads: build.Interned) -> Pairs:
    location = frames.of_stacks(list(map(attrgetter("args.call_stack"), events)))
    start, _ = build.spans(events, base_ns)
    thread = threads.all(list(map(attrgetter("tid"), events)))
    kept = location > 0
    return start[kept], thread[kept], location[kept]


def _steps(groups: dict[str, list[Event]], base_ns: int) -> tuple[tuple[int, int], ...]:
    marks = [event for event in groups.get("user_annotation", []) if event.name.startswith(STEP_MARK)]
    start, end = build.spans(marks, base_ns)
    return tuple(sorted(set(zip(start.tolist(), end.tolist(), strict=True))))


def _whole(groups: dict[str, list[Event]], base_ns: int) -> tuple[tuple[int, int], ...]:
    events = [event for name in ("cpu_op", "kernel", "cuda_runtime") for event in groups.get(name, [])]
    start, end = build.spans(events, base_ns)
    return ((int(start.min()), int(end.max())),) if events else ()


def _device(chrome: Chrome, kernels: bool) -> DeviceFacts:
    if not kernels:
        return DeviceFacts(kind="cpu")
    known = chrome.devices[0] if chrome.devices else {}
    try:
        return DeviceFacts(
            kind="cuda",
            name=str(known.get("name", "")),
            count=max(1, len(chrome.devices)),
            capability=(int(known["computeMajor"]), int(known["computeMinor"])),
            multiprocessors=int(known.get("numSms", 0)),
            memory_bytes=int(known.get("totalGlobalMem", 0)),
        )
    except (KeyError, TypeError, ValueError):
        return DeviceFacts(kind="cuda", name=str(known.get("name", "")))
