"""Traces of other tools: Chrome traces of torch.profiler, plain or gzipped, TensorBoard log folders, and
exports in other formats (``FORMATS``), which are converted to Chrome traces.

A Chrome trace has no line events. It may have Python frames (``with_stack=True``) or "Call stack" arguments.
Both name a function by the line of its ``def``, so costs are shown at that line, and a note says so. The
user's files are guessed: those that belong neither to Python nor to a well-known package.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import time_ns

import numpy as np

from warpline import runs
from warpline.model.problem import Problem
from warpline.trace import contradictions, nsys, stacks
from warpline.trace.columns import Trace
from warpline.trace.decode import Chrome, collector_paused
from warpline.trace.events import (
    DEVICE_CATEGORIES,
    FRAMES,
    MARKS,
    RUNTIME_CATEGORIES,
    Interned,
    Table,
    Tables,
    spans,
)
from warpline.trace.exported import Export, Format, as_chrome
from warpline.trace.frames import Frames
from warpline.trace.keep import keep
from warpline.trace.linked import Pairs, Parts, assemble
from warpline.trace.names import Names
from warpline.trace.ranges import Pool, tables_of
from warpline.wire.records import THREAD_SHIFT
from warpline.wire.run import (
    FACTS,
    LINES,
    LOCATIONS,
    MANIFEST,
    RUN_FORMAT,
    SOURCES,
    TRACE,
    DeviceFacts,
    Facts,
    Locations,
    Manifest,
    Request,
)

TRACE_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
STEP_MARK = "ProfilerStep#"
#: Formats other than Chrome traces; a new one is a module and a row here.
FORMATS: tuple[Format, ...] = (nsys,)


def traces(path: Path) -> list[Path]:
    """The trace files of ``path``: the file itself, or those in a log folder, oldest first; none of the files
    of runs that lie there.

    Raises Problem if there is none.
    """
    if not path.exists():
        raise Problem(f"no such file: {path}")
    if path.is_file():
        return [path]
    if runs.is_run(path):
        raise Problem(f"{path} is a run already: warpline show {path}")
    files = _files(path)
    found = [file for file in files if file.name.endswith(TRACE_ENDINGS)]
    found = found or [file for file in files if file.name.endswith((".json", ".json.gz"))]
    found = found or [
        file for file in files if any(file.suffix in one.ENDINGS and one.is_export(file) for one in FORMATS)
    ]
    if not found:
        raise Problem(f"{path} has no traces (files that end in {' or '.join(TRACE_ENDINGS)})")
    return sorted(found, key=lambda file: (file.stat().st_mtime_ns, file.name))


def _files(folder: Path) -> list[Path]:
    """All files below ``folder``, but for those of runs."""
    found = []
    for place, folders, names in os.walk(folder):
        if runs.is_run(Path(place)):
            folders.clear()
            continue
        found += [Path(place, name) for name in names]
    return found


def format_of(path: Path) -> Format | None:
    """The format of a file; None for Chrome traces and for other files."""
    return next((one for one in FORMATS if one.is_export(path)), None)


def read(path: Path, processes: int | None = None) -> Trace:
    """The trace in ``path`` (of a folder the newest). Raises Problem when there is none.

    ``processes``: how many may read it at once; None: one for each core.
    """
    with collector_paused():
        tables, chrome, notes = tables_of(traces(path)[-1], processes)
        return _doubted(assemble(_parts(chrome, tables, path), tables, chrome, notes))


def import_run(path: Path, run: Path, pool: Pool | None = None) -> Trace:
    """Make the run folder ``run`` from the trace file ``path``. As with any run, it is complete or absent.

    ``path``: a Chrome trace, or an export in one of FORMATS. ``pool``: processes that read. Returns the same
    as ``trace.read(run)``, so that the run need not be read again. Raises Problem.
    """
    with importing(path, run, pool) as trace:
        return trace


@contextmanager
def importing(path: Path, run: Path, pool: Pool | None = None) -> Iterator[Trace]:
    """The same, for a block that uses the trace while its copy is packed: then ``run`` is complete. Raises
    Problem."""
    for each in FORMATS:
        if path.suffix in each.CONVERT:
            raise Problem(each.CONVERT[path.suffix].format(path=path))
    partial = run.with_name(f".{run.name}.partial")
    try:
        with ThreadPoolExecutor(1) as beside:
            with _saying(run), collector_paused():
                partial.mkdir(parents=True)
                known = format_of(path)
                export = known.read(path) if known else None
                if export is not None:
                    (partial / TRACE).write_bytes(as_chrome(export))
                tables, chrome, notes = tables_of(path if export is None else partial / TRACE, pool=pool)
                # Reading needs all cores; what follows needs one.
                kept = beside.submit(keep, path, partial) if export is None else None
                parts = _parts(chrome, tables, path, export)
                trace = _doubted(assemble(parts, tables, chrome, notes))
            yield trace
            with _saying(run):
                _write(replace(parts, manifest=trace.manifest), partial)
                if kept is not None:
                    kept.result()
                partial.rename(run)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _saying(run: Path) -> Iterator[None]:
    """Raises Problem when the run folder ``run`` cannot be written."""
    try:
        yield
    except OSError as error:
        raise Problem(f"cannot write {run}: {error.strerror or error}") from None


def _doubted(trace: Trace) -> Trace:
    """Add a note to the manifest about launches that contradict each other."""
    found = contradictions.launches(trace.kernels, trace.host)
    manifest = replace(trace.manifest, notes=(*trace.manifest.notes, *found))
    return replace(trace, manifest=manifest)


def _write(parts: Parts, run: Path) -> None:
    time, thread, location = parts.lines
    pairs = np.stack([time, (thread << THREAD_SHIFT) | location], axis=1) if len(time) else np.zeros((0, 2))
    (run / LINES).write_bytes(pairs.astype("<i8").tobytes())
    runs.write_json(run, FACTS, parts.facts)
    runs.write_json(run, LOCATIONS, parts.locations)
    runs.write_json(run, SOURCES, parts.sources)
    runs.write_json(run, MANIFEST, parts.manifest)


def _parts(chrome: Chrome, tables: Tables, path: Path, export: Export | None = None) -> Parts:
    """The parts of a run folder that a trace lacks, as far as they can be inferred."""
    frames = Frames()
    threads = Interned()
    notes = [f"made from {path.name}"]
    if export is not None:
        lines = _from_export(export, frames, threads)
        notes += export.notes
    elif len(tables[FRAMES]):
        lines, how = stacks.of_frames(tables[FRAMES], chrome.base_ns, frames, threads)
        notes += how
    elif any(tables["cpu_op"].numbered("call_stack")[1]):
        lines = _from_stacks(tables["cpu_op"], chrome.base_ns, frames, threads)
        notes.append(
            "the trace has call stacks but no lines: costs are shown at the def line of each function"
        )
    else:
        lines = (np.zeros(0, np.int64),) * 3
        notes.append(
            "the trace was recorded without stacks (with_stack=True): nothing can be attributed to a line"
        )
    kernels = any(len(tables[category]) for category in DEVICE_CATEGORIES)
    steps = tuple(export.steps) if export is not None else _steps(tables, chrome.base_ns)
    manifest = Manifest(
        format=RUN_FORMAT,
        # The run is as old as the import: the base of a trace is a fixed day, often months before it.
        created_ns=time_ns(),
        script=frames.script or str(path.resolve()),
        argv=(),
        python_version="unknown",
        torch_version="unknown",
        device=_device(chrome, tables, kernels),
        request=Request(),
        step_source=("mark" if export is not None else "profiler") if steps else "whole",
        timed_ns=(),
        captured=steps or _whole(tables, chrome.base_ns),
        line_events="none",
        roots=(),
        rank=_number(chrome.distributed.get("rank"), 0),
        world_size=_number(chrome.distributed.get("world_size"), 1),
        notes=tuple(notes),
    )
    locations = Locations(
        tuple(frames.files), tuple(frames.functions), tuple(frames.locations), tuple(threads.index)
    )
    return Parts(manifest, Facts(), locations, frames.sources(), lines)


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and value > 0 else otherwise


def _from_export(export: Export, frames: Frames, threads: Interned) -> Pairs:
    time, thread, frame = zip(*export.lines, strict=True) if export.lines else ((), (), ())
    return np.array(time, np.int64), threads.all(thread), frames.of_names(frame)


def _from_stacks(table: Table, base_ns: int, frames: Frames, threads: Interned) -> Pairs:
    stack, stacks = table.numbered("call_stack")
    location = frames.of_stacks(stacks)[stack]
    start, _ = spans([table], base_ns)
    thread = threads.whole(table.numbered("tid"))
    kept = location > 0
    return start[kept], thread[kept], location[kept]


def _steps(tables: Tables, base_ns: int) -> tuple[tuple[int, int], ...]:
    name, names = tables[MARKS].numbered("name")
    rows = Names(names).mask(STEP_MARK)[name]
    start, end = (moments[rows] for moments in spans([tables[MARKS]], base_ns))
    return tuple(sorted(set(zip(start.tolist(), end.tolist(), strict=True))))


def _whole(tables: Tables, base_ns: int) -> tuple[tuple[int, int], ...]:
    start, end = spans(
        [tables[name] for name in ("cpu_op", *DEVICE_CATEGORIES, *RUNTIME_CATEGORIES)], base_ns
    )
    return ((int(start.min()), int(end.max())),) if len(start) else ()


def _device(chrome: Chrome, tables: Tables, kernels: bool) -> DeviceFacts:
    """Kind and properties of the device, from the trace's head."""
    if not kernels:
        return DeviceFacts(kind="cpu")
    known = chrome.devices[0] if chrome.devices else {}
    if (kind := _kind(tables)) != "cuda":
        # On such a device, computeMajor is not a CUDA compute capability.
        name, count = str(known.get("name", "")), max(1, len(chrome.devices))
        return DeviceFacts(kind=kind, name=name, count=count)
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


def _kind(tables: Tables) -> str:
    """The kind of a device with kernels, from the runtime that launches them, since torch for ROCm calls
    itself "cuda"."""
    if len(tables["xpu_runtime"]):
        return "xpu"
    called = (name for category in RUNTIME_CATEGORIES for name in tables[category].numbered("name")[1])
    return "rocm" if any(name.startswith("hip") for name in called) else "cuda"
