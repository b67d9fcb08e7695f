"""The captured steps as recorded: what each thread and stream did over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: ``marks``: named ranges. ``lines``: the source line that a thread is at. ``ops``: dispatcher and runtime
#: calls. ``idle``: the device is idle. ``stream``: kernels, copies, collectives.
Kind = Literal["marks", "lines", "ops", "idle", "stream"]


@dataclass(frozen=True, slots=True)
class Track:
    """Columns of one length, sorted by start. Times in ns since the capture began.

    ``label``: index into ``Timeline.labels``. ``line``: index into ``Timeline.lines``, -1 if unknown.
    ``depth``: how many items of this track enclose it. ``kind`` in a stream: 0 forward, 1 backward,
    2 recomputation, 3 copy, 4 communication; of idle moments: 0 host, 1 loader, 2 waiting.
    """

    name: str
    kind: Kind
    start_ns: tuple[int, ...]
    length_ns: tuple[int, ...]
    label: tuple[int, ...]
    line: tuple[int, ...]
    depth: tuple[int, ...]
    sort: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The tracks of a capture. All times are with the profiler on. A host that runs ahead ends its steps
    before the device does, so the capture continues until the device is idle.
    """

    length_ns: int
    steps: tuple[tuple[int, int], ...]  # start and length of each captured step, as the host went through it
    median: int  # index of the step of median length
    labels: tuple[str, ...]
    lines: tuple[tuple[str, int], ...]  # (path, line)
    tracks: tuple[Track, ...]
    left_out: int = 0  # number of shortest calls omitted, if there are too many for a page
    memory_ns: tuple[int, ...] = ()
    memory_bytes: tuple[int, ...] = ()  # allocated at that time, by the allocator's count
