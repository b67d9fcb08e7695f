"""One rank's run folder or trace -> its table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from warpline import runs, trace
from warpline.attribution.attribute import attribute
from warpline.attribution.communication import exchanges_by_step, pace_ns
from warpline.attribution.sampled import FEWEST
from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.trace import foreign
from warpline.trace.alone import host_alone_ns

_RANK = re.compile(r"rank[-_ ]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LineTime:
    """A line on one rank, milliseconds per step."""

    file: str
    line: int
    function: str
    step_ms: float
    device_ms: float
    communication_ms: float


@dataclass(frozen=True, slots=True)
class RankTable:
    """What is known of one rank: all that goes from where its data lies to where the tables are merged.

    ``rank``: -1 where neither the trace nor its name says. ``job``: what is known of the job, such as
    "train.py with 2 ranks"; two that differ are two jobs. ``steps_ns``: length of each captured step.
    ``exchanges_ns``: for each step the lengths of the collectives that it queued, in order of time.
    ``pace_ns``: from the end of a step's collectives to that of the next one's. ``host_ns``: what the host
    needs for a step by itself, None where that is not known or the host is all there is.
    """

    source: str
    rank: int = -1
    world: int = 1
    job: str = ""
    begun_ns: int = 0  # when its first captured step began, unix time by its own clock
    timed: bool = False  # step_ms is of steps without the profiler
    step_ms: float = 0.0
    on_host: bool = False  # without a device: its exchanges are slowed by the recording as the rest is
    sampled: bool = False  # the lines have the times of a window in which nothing was recorded
    steps_ns: tuple[int, ...] = ()
    exchanges_ns: tuple[tuple[int, ...], ...] = ()
    pace_ns: float = 0.0
    host_ns: float | None = None
    lines: tuple[LineTime, ...] = ()
    problem: str = ""  # why there is nothing else, in one line


def table_of(path: Path) -> RankTable:
    """``path``: a run folder, or a trace file. What cannot be read is a table with its ``problem``."""
    try:
        return _table(path)
    except Problem as problem:
        return RankTable(str(path), problem=str(problem))
    except Exception as error:  # noqa: BLE001  # one rank's odd trace must not cost the others
        return RankTable(str(path), problem=f"reading it failed ({type(error).__name__}: {error})")


def _table(path: Path) -> RankTable:
    # Other ranks are read at the same time: one process each.
    events = trace.read(path, 1) if runs.is_run(path) else foreign.read(path, 1)
    return table_from(path, events, attribute(events))


def table_from(path: Path, events: trace.Trace, profile: Profile) -> RankTable:
    """The table of a rank that was read from ``path`` already."""
    manifest = events.manifest
    own, step = exchanges_by_step(events)
    lengths = own.end_ns - own.start_ns
    name = _RANK.search(path.name)
    script = Path(manifest.request.target).name  # empty in traces made elsewhere
    known = manifest.world_size > 1 or bool(script)
    count = f"{manifest.world_size} ranks" if manifest.world_size > 1 else "one process"
    return RankTable(
        str(path),
        manifest.rank if known else int(name[1]) if name is not None else -1,
        manifest.world_size,
        f"{script or 'a job'} with {count}" if known else "",
        manifest.captured[0][0] if manifest.captured else 0,
        bool(manifest.timed_ns),
        profile.steps.step_ms,
        not events.on_gpu,
        not events.on_gpu and events.facts.samples.total >= FEWEST,
        tuple(end - begin for begin, end in manifest.captured),
        tuple(tuple(lengths[step == number].tolist()) for number in range(len(manifest.captured))),
        pace_ns(own, step),
        host_alone_ns(events) if events.on_gpu else None,
        tuple(
            LineTime(cost.file, cost.line, cost.function, cost.step_ms, cost.device_ms, cost.communication_ms)
            for cost in profile.lines
        ),
    )
