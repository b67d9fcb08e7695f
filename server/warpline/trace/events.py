"""Typed events -> columns, piece by piece: what Python makes of a piece is gone before the next one.

A trace of a million events takes gigabytes as objects. Memory that is touched for the first time costs
more than what is done with it, so the pieces are small and only their columns stay.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from warpline.trace.columns import Floats, Ints
from warpline.trace.decode import Chrome, Event, decode

RUNTIME_CATEGORIES = ("cuda_runtime", "cuda_driver", "privateuse1_runtime", "xpu_runtime")
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
MEMORY, ARROWS, MARKS, FRAMES = "cpu_instant_event", "fwdbwd", "user_annotation", "python_function"
#: Ops with a cost that depends on scalar arguments, so these belong to the signature.
OPS_WITH_VALUES = ("aten::convolution", "aten::_convolution", "aten::conv", "aten::_scaled_dot_product")
#: What the categories were called until torch 1.12; marks were operators then, and threads' numbers text.
OLD = {
    "Operator": "cpu_op", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset",
    "Runtime": "cuda_runtime", "Python function": FRAMES,
}  # fmt: skip
_OLD_MARKS = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")
TIMES = ("ts", "dur")
LATEST_US = 4e15  # in the year 2096: nanoseconds of unix time fit in an int64
FIRST = 64  # events that identify the trace
_NUMBERS = {  # integer arguments of an event that are columns of their own
    **dict.fromkeys(("cpu_op", *RUNTIME_CATEGORIES), ("sequence", "forward_thread", "correlation")),
    **dict.fromkeys(DEVICE_CATEGORIES, ("correlation", "device", "stream", "graph_node", "copied")),
    MEMORY: ("allocated", "address", "device_type", "device_id", "total"),
}


class Interned:
    """Values numbered in the order in which they were first met."""

    def __init__(self, first: Iterable[Any] = ()) -> None:
        self.index: defaultdict[Any, int] = defaultdict()
        self.index.default_factory = self.index.__len__
        self.all(list(first))

    def all(self, values: Sequence[Any]) -> Ints:
        return np.fromiter(map(self.index.__getitem__, values), np.int64, len(values))

    def numbers(self, column: tuple[Ints, list[Any]]) -> Ints:
        """The same for values that are already numbered; each is looked up once."""
        numbers, values = column
        met, first = np.unique(numbers, return_index=True)
        met = met[np.argsort(first, kind="stable")]
        table = np.full(len(values), -1, np.int64)
        table[met] = self.all([values[at] for at in met.tolist()])
        return table[numbers]


class Column:
    """Pieces of one column, joined when it is first asked for."""

    def __init__(self, kind: type[np.generic]) -> None:
        self.kind = kind
        self.pieces: list[Any] = []

    def whole(self) -> Any:
        if len(self.pieces) != 1:
            self.pieces = [np.concatenate(self.pieces) if self.pieces else np.zeros(0, self.kind)]
        return self.pieces[0]


class Table:
    """The events of one category, in the order of the trace."""

    def __init__(self, category: str) -> None:
        self.category = category
        self.length = 0
        self._columns: defaultdict[str, Column] = defaultdict(lambda: Column(np.int64))
        self._columns["ts"], self._columns["dur"] = Column(np.float64), Column(np.float64)
        self._values: defaultdict[str, Interned] = defaultdict(Interned)

    def __len__(self) -> int:
        return self.length

    def take(self, events: list[Event]) -> int:
        """Add a piece; the number of events left out of it, whose times cannot be."""
        times = [np.fromiter(map(attrgetter(field), events), np.float64, len(events)) for field in TIMES]
        possible = (np.abs(times[0]) < LATEST_US) & (times[1] >= 0) & (times[1] < LATEST_US)
        left_out = int(np.count_nonzero(~possible))
        if left_out:
            events = [events[at] for at in np.flatnonzero(possible).tolist()]
            times = [each[possible] for each in times]
        self._take(events)
        for field, each in zip(TIMES, times, strict=True):
            self._columns[field].pieces.append(each)
        return left_out

    def _take(self, events: list[Event]) -> None:
        self.length += len(events)
        names = list(map(attrgetter("name"), events))
        self._intern("name", names)
        self._intern("tid", _threads(list(map(attrgetter("tid"), events))))
        if self.category.startswith(ARROWS):
            self._intern("id", list(map(attrgetter("id"), events)))
        numbers = _NUMBERS.get(self.category)
        if numbers is None:
            return
        arguments = list(map(attrgetter("args"), events))
        for field in numbers:
            self._add(field, map(attrgetter(field), arguments), len(events), np.int64)
        if self.category == "cpu_op":
            self._intern("call_stack", list(map(attrgetter("call_stack"), arguments)))
            self._intern("signature", list(_signatures(names, arguments)))
        elif self.category in DEVICE_CATEGORIES:
            self._intern("shape", list(_shapes(arguments)))

    def column(self, field: str) -> Any:
        """A column of numbers; of anything else, see :meth:`numbered`."""
        return self._columns[field].whole()

    def numbered(self, field: str) -> tuple[Ints, list[Any]]:
        """A column of anything: the number of each event's value, and the values."""
        return self._columns[field].whole(), list(self._values[field].index)

    def _add(self, field: str, values: Iterable[Any], count: int, kind: type[np.generic]) -> None:
        self._columns[field].pieces.append(np.fromiter(values, kind, count))

    def _intern(self, field: str, values: list[Any]) -> None:
        self._columns[field].pieces.append(self._values[field].all(values))


class Tables:
    """Complete spans, memory instants and flow arrows by category (arrows by their phase too)."""

    def __init__(self) -> None:
        self.of: dict[str, Table] = {}
        self.left_out = 0  # events without a time that can be
        self.processes: list[Any] = []  # of the first events
        self._categories, self._phases = Interned(), Interned()

    def __getitem__(self, category: str) -> Table:
        found = self.of.get(category)
        return Table(category) if found is None else found

    def take(self, events: list[Event]) -> None:
        """Add a piece of the trace."""
        if len(self.processes) < FIRST:
            self.processes += map(attrgetter("pid"), events[: FIRST - len(self.processes)])
        if not OLD.keys().isdisjoint(set(map(attrgetter("cat"), events))):
            _renew(events)
        category = self._categories.all(list(map(attrgetter("cat"), events)))
        phase = self._phases.all(list(map(attrgetter("ph"), events)))
        categories, phases = list(self._categories.index), list(self._phases.index)
        for at in np.unique(category).tolist():
            of_category = category == at
            for letter in np.unique(phase[of_category]).tolist():
                name = categories[at]
                if phases[letter] == "X" or name in (MEMORY, ARROWS):
                    name = f"{name}:{phases[letter]}" if name == ARROWS else name
                    rows = np.flatnonzero(of_category & (phase == letter)).tolist()
                    table = self.of.setdefault(name, Table(name))
                    self.left_out += table.take(list(map(events.__getitem__, rows)))


def _renew(events: list[Event]) -> None:
    """Old events as they are written today."""
    for event in events:
        mark = event.cat == "Operator" and event.name.startswith(_OLD_MARKS)
        event.cat = MARKS if mark else OLD.get(event.cat, event.cat)
        if isinstance(event.tid, str) and event.tid.isdecimal():
            event.tid = int(event.tid)


def _threads(values: list[Any]) -> list[int]:
    """Numbers of threads. A name gets the same one in each reading: the run folder has only numbers."""
    if set(map(type, values)) <= {int}:
        return values
    return [value if isinstance(value, int) else zlib.crc32(str(value).encode()) for value in values]


def tables_of(path: Path) -> tuple[Tables, Chrome, list[str]]:
    """The events of a trace, the rest of it, notes on what of it could not be read. Raises Problem."""
    tables = Tables()
    chrome, damage = decode(path, tables.take)
    damage.left_out += tables.left_out
    return tables, chrome, damage.notes()


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
    return np.concatenate([np.zeros(0, np.int64), *(into.numbers(table.numbered(field)) for table in tables)])


def _signatures(names: list[str], arguments: list[Any]) -> Iterable[tuple[bytes, bytes, bytes, bytes]]:
    """``Input Dims``, types, strides, and for some ops the values, as they are in the trace."""

    def raw(field: str) -> Iterable[bytes]:
        return map(bytes, map(attrgetter(field), arguments))

    chosen = {name for name in dict.fromkeys(names) if name.startswith(OPS_WITH_VALUES)}
    values: Iterable[bytes] = repeat(b"")
    if chosen:
        values = (value if name in chosen else b"" for name, value in zip(names, raw("values"), strict=True))
    return zip(raw("dims"), raw("types"), raw("strides"), values, strict=False)


def _shapes(arguments: list[Any]) -> Iterable[tuple[Any, ...]]:
    """Grid, block, registers, shared memory and occupancy of launches."""
    return zip(
        map(bytes, map(attrgetter("grid"), arguments)),
        map(bytes, map(attrgetter("block"), arguments)),
        *(map(attrgetter(field), arguments) for field in ("registers", "shared", "occupancy")),
        strict=True,
    )
