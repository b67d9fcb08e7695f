"""A trace as columns: what happened, linked, without attribution.

Every table is a frozen dataclass of numpy arrays of one length. All times are int64 nanoseconds of unix time;
spans are half-open. An index into another table is ``-1`` if there is no such row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warpline.devices import can
from warpline.trace.names import Names
from warpline.wire.inside import LibraryLocations

if TYPE_CHECKING:
    from warpline.wire.run import Facts, Locations, Manifest

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

OP, RUNTIME = 0, 1
_MANY = 4  # times as many rows as the column is long, from which on it is quicker to copy the column
KERNEL, COPY, SET, COMMUNICATION = 0, 1, 2, 3


def take(column: NDArray[Any], rows: Ints, missing: Any = -1) -> NDArray[Any]:
    """``column[rows]``, and ``missing`` where a row is -1. This works for an empty ``column`` too."""
    if not len(column):
        return np.full(len(rows), missing, column.dtype)
    if len(rows) > _MANY * len(column):
        return np.append(column, np.array(missing, column.dtype))[rows]
    found = column[rows]
    found[rows < 0] = missing
    return found


def occurring(numbers: Ints, count: int) -> Ints:
    """The distinct ``numbers``, all less than ``count``, sorted."""
    met = np.zeros(count, bool)
    met[numbers] = True
    return np.flatnonzero(met)


@dataclass(frozen=True, slots=True)
class Host:
    """Dispatcher calls (``kind == OP``) and calls of the device's runtime (``kind == RUNTIME``).

    Sorted by thread, then start, outer before inner: a parent is always before its children.
    """

    start_ns: Ints
    end_ns: Ints
    thread: Ints  # index into Trace.threads
    name: Ints  # index into Trace.names
    kind: Ints
    sequence: Ints  # autograd's sequence number, -1 if none
    forward_thread: Ints  # torch's number of the thread that ran the forward op; 0: not a backward op
    correlation: Ints  # of runtime calls: the number that links kernels to them
    signature: Ints  # index into Trace.signatures
    parent: Ints  # innermost host event around this one on its thread
    depth: Ints  # number of events around it

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Kernels:
    """Device work: kernels, copies, sets, collectives. Sorted by start."""

    start_ns: Ints
    end_ns: Ints
    name: Ints
    kind: Ints  # KERNEL, COPY, SET, COMMUNICATION
    device: Ints
    stream: Ints
    launch: Ints  # index into Host of the runtime call that queued it
    in_graph: Bools  # replayed by a CUDA graph
    shape: Ints  # index into Trace.launch_shapes
    bytes: Ints  # of copies and sets, else 0

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def device_stream(self) -> Ints:
        """A distinct number for each stream of each device."""
        return self.stream + (self.device << 32)


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """How a kernel was launched."""

    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    occupancy_percent: float | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs of an op, as recorded by ``record_shapes``."""

    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    strides: tuple[tuple[int, ...], ...] = ()
    values: tuple[str, ...] = ()  # scalars and lists as text, "" for tensors


@dataclass(frozen=True, slots=True)
class Marks:
    """Named ranges: torch's, the runner's, the user's. Sorted by thread, then start."""

    start_ns: Ints
    end_ns: Ints
    thread: Ints
    name: Ints

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Collectives of one rank, sorted by start."""

    start_ns: Ints
    end_ns: Ints

    def __len__(self) -> int:
        return len(self.start_ns)

    def at(self, rows: Bools) -> Exchanges:
        """A selection of the collectives, by mask."""
        return Exchanges(self.start_ns[rows], self.end_ns[rows])


@dataclass(frozen=True, slots=True)
class Peer:
    """Another rank of the run, in its captured steps."""

    exchanges: Exchanges
    step_ns: float = 0.0  # mean captured step
    host_ns: float | None = None  # the part of it that the rank's host needs by itself: ``trace.alone``


@dataclass(frozen=True, slots=True)
class Memory:
    """Allocations (bytes > 0) and frees (bytes < 0), in order of time."""

    time_ns: Ints
    thread: Ints
    bytes: Ints
    address: Ints
    on_device: Bools  # False: host memory
    device: Ints
    total: Ints  # total allocated at this time, by the allocator's count; 0 if not recorded


@dataclass(frozen=True, slots=True)
class Records:
    """Line records: from ``time_ns`` on, ``thread`` is at ``location`` (0: not in the user's files).

    Sorted by thread, then time. Thread ``t`` has the rows ``first[t]:first[t + 1]``.
    """

    time_ns: Ints
    thread: Ints
    location: Ints  # index into Trace.locations
    first: Ints
    again: Bools  # Python returned to a line that had begun before
    inferred: Bools  # not recorded, but found by the operators of a call (``inferred.py``)


def no_records() -> Records:
    """An empty table of line records."""
    none = np.zeros(0, np.int64)
    return Records(none, none, none, none, np.zeros(0, bool), np.zeros(0, bool))


@dataclass(frozen=True, slots=True)
class Trace:
    manifest: Manifest
    facts: Facts
    locations: Locations
    sources: dict[str, str]
    names: Names
    signatures: tuple[Signature, ...]  # entry 0 is empty
    launch_shapes: tuple[LaunchShape, ...]  # entry 0 is empty
    threads: tuple[int, ...]  # native thread ids
    main: int  # index of the thread that drives the steps
    first: int  # the process's first thread: its line applies where that one is at none
    drivers: tuple[int, ...]  # those whose records are also the main one's, because it waits for them
    forward_threads: dict[int, int]  # torch's thread number -> index into threads
    host: Host
    kernels: Kernels
    marks: Marks
    memory: Memory
    records: Records
    window_ns: tuple[int, int]  # first captured step's start, last one's end
    device_properties: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    peers: tuple[Peer, ...] = ()  # the run's other ranks
    libraries: LibraryLocations = field(default_factory=LibraryLocations)
    inside: Records = field(default_factory=no_records)  # library lines; locations index ``libraries``

    @property
    def steps(self) -> int:
        """Number of captured steps, at least 1; totals are divided by it."""
        return max(1, len(self.manifest.captured))

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU. Otherwise the operators are the device's work."""
        return len(self.kernels) > 0 or can(self.manifest.device.kind, "kernels")
