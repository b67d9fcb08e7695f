"""Run folder -> Trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from warpline import packed, runs
from warpline.model.problem import Problem
from warpline.trace import build, contradictions
from warpline.trace.ahead import Ahead
from warpline.trace.columns import Ints, Records, Trace
from warpline.trace.decode import Chrome, collector_paused
from warpline.trace.drivers import with_drivers
from warpline.trace.dynamo import at_callers
from warpline.trace.events import MARKS, Interned, Tables
from warpline.trace.inferred import with_inferred
from warpline.trace.names import Names
from warpline.trace.peers import peers
from warpline.trace.ranges import tables_of
from warpline.wire.inside import INSIDE_PAIRS, INSIDE_TABLE, LibraryLocations
from warpline.wire.records import AGAIN, PAIR_BYTES, THREAD_SHIFT
from warpline.wire.run import LINES, LOCATIONS, TRACE, Facts, Locations, Manifest

STEPPED = "Optimizer.step#"  # how torch begins the names of its marks around optimizer steps
Pairs = tuple[Ints, Ints, Ints]  # time_ns, thread index, location (with its AGAIN bit)
_UNREADABLE: tuple[type[Exception], ...] = (OSError, *packed.ERRORS)
NO_PAIRS: Pairs = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a run folder other than the trace."""

    manifest: Manifest
    facts: Facts
    locations: Locations
    sources: dict[str, str]
    lines: Pairs
    libraries: LibraryLocations = field(default_factory=LibraryLocations)
    inside: Pairs = NO_PAIRS


def read(run: Path, processes: int | None = None, ahead: Ahead | None = None) -> Trace:
    """Everything in the run folder ``run``, linked. Raises Problem if it is not a complete run.

    ``processes``: how many may read it at once; None: one for each core. ``ahead``: what was read of it while
    the script ran.
    """
    manifest = runs.manifest(run)
    facts = runs.facts(run)
    locations = runs.read(run, LOCATIONS, Locations)
    sources = runs.sources(run)
    with collector_paused():
        path = runs.part(run, TRACE)
        tables, chrome, notes = tables_of(path, processes, ahead.tables(path) if ahead is not None else None)
        threads = len(locations.threads)
        lines, odd = pairs(runs.part(run, LINES), threads, len(locations.locations))
        if odd:
            notes.append(f"{odd} malformed line records were left out")
        libraries, inside = _libraries(run, threads)
        parts = Parts(manifest, facts, locations, sources, lines, libraries, inside)
        trace = assemble(parts, tables, chrome, notes)
    return replace(trace, peers=peers(run)) if manifest.world_size > 1 else trace


def _libraries(run: Path, threads: int) -> tuple[LibraryLocations, Pairs]:
    """Library lines and their records; empty for runs without them."""
    if not (run / INSIDE_TABLE).exists():
        return LibraryLocations(), NO_PAIRS
    table = runs.read(run, INSIDE_TABLE, LibraryLocations)
    return table, pairs(runs.part(run, INSIDE_PAIRS), threads, len(table.locations))[0]


def pairs(path: Path, threads: int, locations: int) -> tuple[Pairs, int]:
    """The records of ``path`` (none if it is absent), and the number of malformed ones that were omitted.
    ``threads``, ``locations``: how many of each exist; a record with a larger number is malformed. Raises
    Problem."""
    try:
        data = path.read_bytes()
        data = packed.unpacked(data) if path.suffix == ".gz" else data
    except FileNotFoundError:
        data = b""
    except _UNREADABLE as error:
        raise Problem(f"cannot read {path}: {error}") from None
    whole = np.frombuffer(data, "<i8", len(data) // PAIR_BYTES * 2).reshape(-1, 2)
    thread, location = whole[:, 1] >> THREAD_SHIFT, whole[:, 1] & ((1 << THREAD_SHIFT) - 1)
    place = location & ~AGAIN
    good = (thread >= 0) & (thread < threads) & (place < locations)
    bad = int((~good).sum()) + (1 if len(data) % PAIR_BYTES else 0)
    return (whole[good, 0].astype(np.int64), thread[good], location[good]), bad


def assemble(parts: Parts, tables: Tables, chrome: Chrome, notes: Sequence[str]) -> Trace:
    """Linked columns of a decoded trace, with the line records beside them."""
    base = chrome.base_ns
    names, threads = Interned(), Interned()
    of_record = threads.all(list(parts.locations.threads))
    host, signatures = build.host(tables, base, names, threads)
    kernels, shapes = build.kernels(tables, base, names, host)
    kernels, clocks = contradictions.one_clock(kernels, host)
    marks = build.marks(tables, base, names, threads)
    memory = build.memory(tables, base, threads)
    forward = build.forward_threads(tables, base, host, threads)
    known = tuple(threads.index) or (0,)  # a trace with kernels only: one thread without events
    captured = parts.manifest.captured
    lines = records(parts.lines, of_record, len(known))
    if len(kernels):  # on a CPU the compiled kernels themselves run there
        lines = at_callers(lines, parts.locations, parts.sources)
    shown, long = contradictions.shortened(tuple(names.index))
    forwards = parts.manifest.step_source == "forward"
    handlers = {known[at] for at in np.unique(lines.thread).tolist()} if forwards else set()
    stepping = parts.facts.step_threads or _stepping(tables)
    makers = [known.index(each) for each in stepping if each in known]
    first, main, drivers = _driving(tables, known, handlers, makers)
    inside = with_inferred(records(parts.inside, of_record, len(known)), host, parts.libraries)
    if drivers:
        only_waits = not (host.thread == main).any()
        lines, inside = with_drivers(lines, inside, main, drivers, only_waits=only_waits)
    return Trace(
        manifest=parts.manifest,
        facts=parts.facts,
        locations=parts.locations,
        sources=parts.sources,
        names=Names(shown),
        signatures=signatures,
        launch_shapes=shapes,
        threads=known,
        main=main,
        first=first,
        drivers=drivers,
        forward_threads=forward,
        host=host,
        kernels=kernels,
        marks=marks,
        memory=memory,
        records=lines,
        window_ns=_window(captured, host.start_ns, host.end_ns),
        device_properties=chrome.devices,
        notes=(*notes, *clocks, *long),
        libraries=parts.libraries,
        inside=inside,
    )


def records(raw: Pairs, threads: Ints, count: int) -> Records:
    """Line records sorted by thread and time, with the first record of each of ``count`` threads."""
    time, thread, location = raw
    thread = threads[thread] if len(thread) else thread
    by = np.lexsort((time, thread))
    first = np.searchsorted(thread[by], np.arange(count + 1))
    again = (location[by] & AGAIN) != 0
    return Records(time[by], thread[by], location[by] & ~AGAIN, first, again, np.zeros(len(by), bool))


def _stepping(tables: Tables) -> list[Any]:
    """Threads that step an optimizer, the one with the most steps first."""
    name, names = tables[MARKS].numbered("name")
    thread, values = tables[MARKS].numbered("tid")
    return _busiest(thread[Names(names).mask(STEPPED)[name]], values)


def _driving(
    tables: Tables, threads: tuple[int, ...], handlers: set[int], stepping: list[int]
) -> tuple[int, int, tuple[int, ...]]:
    """The process's first thread (the busiest one if that is unknown), the thread that drives the steps, and
    others whose lines are also that one's; by index.

    If the first thread calls no operators, it waits for what makes the steps: ``stepping``, else the
    ``handlers`` (in a server, a step is a forward pass). One such thread drives them itself; several take
    turns, and the first thread stands for them. If it makes steps, too, the others work in parallel to it.
    """
    of_ops = _busiest(*tables["cpu_op"].numbered("tid"))
    processes = Counter(process for process in tables.processes if isinstance(process, int))
    for process, _ in processes.most_common():
        if process in threads:
            first = threads.index(process)
            if process in of_ops:
                return first, first, () if first in stepping else tuple(stepping)
            makers = stepping or [threads.index(thread) for thread in of_ops if thread in handlers]
            return (first, makers[0], ()) if len(makers) == 1 else (first, first, tuple(makers))
    busiest = threads.index(of_ops[0]) if of_ops else 0
    return busiest, busiest, ()


def _busiest(number: Ints, values: list[Any]) -> list[Any]:
    """The ``values`` that occur, the most frequent first."""
    counts = np.bincount(number, minlength=len(values))
    return [values[at] for at in np.argsort(-counts, kind="stable").tolist() if counts[at]]


def _window(captured: tuple[tuple[int, int], ...], start: Ints, end: Ints) -> tuple[int, int]:
    if captured:
        return captured[0][0], captured[-1][1]
    return (int(start.min()), int(end.max())) if len(start) else (0, 0)
