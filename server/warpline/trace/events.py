"""Typed events -> columns, piece by piece: the objects of a piece are freed before the next one.

A million events take gigabytes as Python objects, and touching new memory costs more than the conversion. So
pieces are small, and only their columns are kept.
"""

from __future__ import annotations

import contextlib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from warpline.trace.columns import Floats, Ints
from warpline.trace.decode import Event

RUNTIME_CATEGORIES = ("cuda_runtime", "cuda_driver", "privateuse1_runtime", "xpu_runtime")
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
MEMORY, ARROWS, MARKS, FRAMES = "cpu_instant_event", "fwdbwd", "user_annotation", "python_function"
#: Ops whose cost depends on scalar arguments: the signature includes these.
OPS_WITH_VALUES = ("aten::convolution", "aten::_convolution", "aten::conv", "aten::_scaled_dot_product")
#: Names of the categories up to torch 1.12, where marks were operators and thread numbers were text.
OLD = {
    "Operator": "cpu_op", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset",
    "Runtime": "cuda_runtime", "Python function": FRAMES,
}  # fmt: skip
_OLD_MARKS = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")
TIMES = ("ts", "dur")
NO_SIGNATURE = bytes(3)  # of an operator without inputs, see ``_signatures``
LATEST_US = 4e15  # in the year 2096: nanoseconds of unix time fit in an int64
LARGEST = 1 << 63  # more than an int64 holds
FIRST = 64  # events that identify the trace
NUMBERS: dict[str, tuple[str, ...]] = {  # integer arguments of an event that are columns of their own
    "cpu_op": ("sequence", "forward_thread"),
    **dict.fromkeys(RUNTIME_CATEGORIES, ("correlation",)),
    **dict.fromkeys(DEVICE_CATEGORIES, ("correlation", "device", "stream", "graph_node", "copied")),
    MEMORY: ("allocated", "address", "device_type", "device_id", "total"),
}
#: Defaults for columns that a category lacks when it is joined with others.
_ABSENT = {"sequence": -1, "forward_thread": 0, "correlation": -1}
#: Categories that are read. Arrows and memory events are instants, by their phase; all others are complete
#: spans.
_READ = {*NUMBERS, MARKS, FRAMES}
_SPAN = {"X"}


class Interned:
    """Values numbered in order of their first occurrence."""

    def __init__(self, first: Iterable[Any] = ()) -> None:
        self.index: defaultdict[Any, int] = defaultdict()
        self.index.default_factory = self.index.__len__
        self.all(list(first))

    def all(self, values: Sequence[Any]) -> Ints:
        """The number of each value; a new value gets the next one."""
        return np.fromiter(map(self.index.__getitem__, values), np.int64, len(values))

    def numbers(self, column: tuple[Ints, list[Any]]) -> Ints:
        """The same for some rows of a column of numbered values; each distinct value is looked up once."""
        numbers, values = column
        met = in_order(numbers, len(values))
        table = np.full(len(values), -1, np.int64)
        table[met] = self.all([values[at] for at in met.tolist()])
        return table[numbers]

    def whole(self, column: tuple[Ints, list[Any]]) -> Ints:
        """The same for all rows of a table's column, whose values are in the order of their first rows."""
        numbers, values = column
        return self.all(values)[numbers]


def in_order(numbers: Ints, count: int) -> Ints:
    """The distinct ``numbers``, all less than ``count``, in order of their first occurrence."""
    first = np.full(count, -1, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)  # the last one written stays
    met = np.flatnonzero(first >= 0)
    return met[np.argsort(first[met])]


class Column:
    """Pieces of one column, joined when it is first asked for."""

    def __init__(self, kind: type[np.generic]) -> None:
        self.kind = kind
        self.pieces: list[Any] = []

    def whole(self) -> Any:
        """The pieces as one array, joined at the first call."""
        if len(self.pieces) != 1:
            self.pieces = [np.concatenate(self.pieces) if self.pieces else np.zeros(0, self.kind)]
        return self.pieces[0]


class Table:
    """The events of one category, in the order of the trace."""

    def __init__(self, category: str) -> None:
        self.category = category
        self.length = 0
        self.columns: defaultdict[str, Column] = defaultdict(lambda: Column(np.int64))
        self.columns["ts"], self.columns["dur"] = Column(np.float64), Column(np.float64)
        self.values: defaultdict[str, Interned] = defaultdict(Interned)

    def __len__(self) -> int:
        return self.length

    def take(self, events: list[Event]) -> int:
        """Add a piece. Returns the number of events that were omitted because their times are impossible."""
        times = [np.fromiter(map(attrgetter(field), events), np.float64, len(events)) for field in TIMES]
        possible = is_possible(*times)
        left_out = 0 if possible.all() else int(np.count_nonzero(~possible))
        if left_out:
            events = [events[at] for at in np.flatnonzero(possible).tolist()]
            times = [each[possible] for each in times]
        self._take(events)
        for field, each in zip(TIMES, times, strict=True):
            self.columns[field].pieces.append(each)
        return left_out

    def _take(self, events: list[Event]) -> None:
        self.length += len(events)
        self._intern_same("tid", list(map(attrgetter("tid"), events)))
        if self.category.startswith(ARROWS):
            self.columns["id"].pieces.append(_ids(list(map(attrgetter("id"), events))))
            return
        names = list(map(attrgetter("name"), events))
        self._intern("name", names)
        numbers = NUMBERS.get(self.category)
        if numbers is None:
            return
        arguments = list(map(attrgetter("args"), events))
        for field in numbers:
            self._add(field, map(attrgetter(field), arguments), len(events), np.int64)
        if self.category == "cpu_op":
            self._intern_same("call_stack", list(map(attrgetter("call_stack"), arguments)))
            self._intern("signature", _signatures(names, arguments))
        elif self.category in DEVICE_CATEGORIES:
            self._intern("shape", list(_shapes(arguments)))

    def extend(self, other: Table) -> None:
        """Add the events of ``other``, which come after these."""
        self.length += other.length
        for field, column in other.columns.items():
            pieces = column.pieces
            if field in other.values:
                numbers = self.values[field].all(list(other.values[field].index))
                pieces = [numbers[piece] for piece in pieces]
            self.columns[field].pieces += pieces

    def column(self, field: str) -> Any:
        """A column of numbers; of anything else, see :meth:`numbered`."""
        if field not in self.columns and field in _ABSENT:
            return np.full(self.length, _ABSENT[field], np.int64)
        return self.columns[field].whole()

    def numbered(self, field: str) -> tuple[Ints, list[Any]]:
        """A column of anything: the number of each event's value, and the values."""
        values = list(self.values[field].index)
        return self.columns[field].whole(), _threads(values) if field == "tid" else values

    def _add(self, field: str, values: Iterable[Any], count: int, kind: type[np.generic]) -> None:
        self.columns[field].pieces.append(np.fromiter(values, kind, count))

    def _intern(self, field: str, values: list[Any]) -> None:
        self.columns[field].pieces.append(self.values[field].all(values))

    def _intern_same(self, field: str, values: list[Any]) -> None:
        """``_intern`` for values that are often all the same: they are looked up once."""
        if values and values.count(values[0]) == len(values):
            number = self.values[field].all(values[:1])
            self.columns[field].pieces.append(np.repeat(number, len(values)))
        else:
            self._intern(field, values)


class Tables:
    """Complete spans, memory instants and flow arrows by category (arrows by their phase too)."""

    def __init__(self) -> None:
        self.of: dict[str, Table] = {}
        self.left_out = 0  # events with impossible times
        self.processes: list[Any] = []  # process numbers of the first events

    def __getitem__(self, category: str) -> Table:
        found = self.of.get(category)
        return Table(category) if found is None else found

    def take(self, events: list[Event]) -> None:
        """Add a piece of the trace."""
        if len(self.processes) < FIRST:
            self.processes += map(attrgetter("pid"), events[: FIRST - len(self.processes)])
        groups = _by(attrgetter("cat"), events)
        if not OLD.keys().isdisjoint(groups):
            _renew(events)
            groups = _by(attrgetter("cat"), events)
        for category, group in groups.items():
            if category == ARROWS:
                for phase, some in _by(attrgetter("ph"), group).items():
                    self._add(f"{category}:{phase}", some)
            elif category == MEMORY or (category in _READ and set(map(attrgetter("ph"), group)) == _SPAN):
                self._add(category, group)
            elif category in _READ:
                self._add(category, [event for event in group if event.ph in _SPAN])

    def _add(self, category: str, events: list[Event]) -> None:
        if events:
            self.left_out += self.table(category).take(events)

    def table(self, category: str) -> Table:
        """The table of a category, made if there is none."""
        return self.of.setdefault(category, Table(category))

    def extend(self, other: Tables) -> None:
        """Add the events of ``other``, which come after these."""
        self.left_out += other.left_out
        self.processes += other.processes[: FIRST - len(self.processes)]
        for category, table in other.of.items():
            self.table(category).extend(table)


def is_possible(start: Floats, length: Floats) -> Any:
    """Which events have times that can be, in microseconds."""
    return (np.abs(start) < LATEST_US) & (length >= 0) & (length < LATEST_US)


def _by(key: Callable[[Event], str], events: list[Event]) -> dict[str, list[Event]]:
    """Events by category or phase, in their order."""
    values = list(map(key, events))
    if values and values.count(values[0]) == len(values):  # torch writes those of a category together
        return {values[0]: events}
    groups: defaultdict[str, list[Event]] = defaultdict(list)
    for value, event in zip(values, events, strict=True):
        groups[value].append(event)
    return groups


def _renew(events: list[Event]) -> None:
    """Convert events of old torch versions to the present form, in place."""
    for event in events:
        mark = event.cat == "Operator" and event.name.startswith(_OLD_MARKS)
        event.cat = MARKS if mark else OLD.get(event.cat, event.cat)
        if isinstance(event.tid, str) and event.tid.isdecimal():
            event.tid = int(event.tid)


def _ids(values: list[Any]) -> Ints:
    """Numbers of arrows, as a column. What is no number gets the same one each time, as :func:`_threads`."""
    with contextlib.suppress(OverflowError):
        return np.fromiter(_threads(values), np.int64, len(values))
    return np.fromiter((int(value) % LARGEST for value in _threads(values)), np.int64, len(values))


def _threads(values: list[Any]) -> list[int]:
    """Thread numbers. A name always gets the same number, since the run folder has only numbers."""
    if set(map(type, values)) <= {int}:
        return values
    return [value if isinstance(value, int) else zlib.crc32(str(value).encode()) for value in values]


def spans(tables: Sequence[Table], base_ns: int) -> tuple[Ints, Ints]:
    """Start and end in ns of unix time; the trace has microseconds with three decimals."""

    def nanoseconds(field: str) -> Ints:
        microseconds: Floats = joined(tables, field)
        return np.rint(microseconds * 1000).astype(np.int64)

    start = nanoseconds("ts") + base_ns
    return start, start + nanoseconds("dur")


def joined(tables: Sequence[Table], field: str) -> Any:
    """A column of numbers of several tables, one after the other."""
    return np.concatenate([np.zeros(0, np.int64), *(table.column(field) for table in tables if len(table))])


def renumbered(tables: Sequence[Table], field: str, into: Interned) -> Ints:
    """A column of anything of several tables, as numbers of ``into``."""
    return np.concatenate([np.zeros(0, np.int64), *(into.whole(table.numbered(field)) for table in tables)])


def _signatures(names: list[str], arguments: list[Any]) -> list[bytes]:
    """``Input Dims``, types, strides, and for some ops the values, as raw JSON joined by NUL bytes (which
    JSON cannot contain). One key is cheaper than a tuple of four."""
    joined = b"\0".join
    chosen = {name for name in set(names) if name.startswith(OPS_WITH_VALUES)}
    if not chosen:
        return [joined((one.dims, one.types, one.strides, b"")) for one in arguments]
    return [
        joined((one.dims, one.types, one.strides, one.values if name in chosen else b""))
        for name, one in zip(names, arguments, strict=True)
    ]


def _shapes(arguments: list[Any]) -> Iterable[tuple[Any, ...]]:
    """Grid, block, registers, shared memory and occupancy of launches."""
    return zip(
        map(bytes, map(attrgetter("grid"), arguments)),
        map(bytes, map(attrgetter("block"), arguments)),
        *(map(attrgetter(field), arguments) for field in ("registers", "shared", "occupancy")),
        strict=True,
    )
