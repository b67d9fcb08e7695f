"""Text of a Chrome trace -> columns, by compiled code: no Python object is made per event.

``rows.c`` says what the code does; it runs as WebAssembly, in wasmtime. That releases the interpreter's lock,
so threads read parts of a trace at once. What the code does not accept, msgspec decodes; where wasmtime is
not installed, msgspec decodes everything.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import math
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from warpline.trace import scan
from warpline.trace.columns import Ints
from warpline.trace.events import (
    ARROWS,
    DEVICE_CATEGORIES,
    FIRST,
    FRAMES,
    MARKS,
    MEMORY,
    NUMBERS,
    RUNTIME_CATEGORIES,
    TIMES,
    Table,
    Tables,
    in_order,
    is_possible,
)

PIECE = 3 << 20  # bytes of text that are best given at once
SMALLEST = 8 << 20  # bytes of a trace: starting takes 0.05 s, in which msgspec reads 15 MB
_ODD = 8  # texts in a row that were not accepted: the others will not be, either
#: By the number that the code has for it; None: all others.
CATEGORIES = (
    None, "cpu_op", *RUNTIME_CATEGORIES, *DEVICE_CATEGORIES, MEMORY, f"{ARROWS}:s", f"{ARROWS}:f", MARKS,
    FRAMES,
)  # fmt: skip
_NUMBERS_FROM = 4  # the column with the first of a category's NUMBERS, or with an arrow's number
_NEAR = 16 << 10  # bytes at the end of a text in which an event should end
_STRING = 16  # bytes of what is known of a text
_LAYOUT = "text", "most", "columns", "width", "rows", "processes", "first", "strings", "arena", "counts"


class Unreadable(Exception):
    """A text within a trace that is no text, or not the number that it has to be."""


def installed() -> bool:
    """Whether the code can probably run. Compiling it takes 0.03 s, this nothing."""
    return importlib.util.find_spec("wasmtime") is not None


@functools.cache
def compiled() -> tuple[Any, Any] | None:
    """What compiled the code, and the code, for :class:`Machine`; None where it cannot run."""
    try:
        import wasmtime

        settings = wasmtime.Config()
        settings.parallel_compilation = False  # its threads would stay
        engine = wasmtime.Engine(settings)
        atexit.register(compiled.cache_clear)  # later, wasmtime could no longer free it
        return engine, wasmtime.Module(engine, Path(__file__).with_name("rows.wasm").read_bytes())
    except Exception:  # noqa: BLE001  # not installed; another processor; too little address space
        return None


class Machine:
    """The code with a memory of its own, for one thread at a time."""

    def __init__(self, engine: Any, module: Any) -> None:
        """Raises what wasmtime raises where there is no memory for it."""
        import wasmtime

        self.store = wasmtime.Store(engine)
        exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        layout: Any = exports["layout"]
        self._read: Any = exports["read"]
        memory: Any = exports["memory"]
        self.memory = np.frombuffer(memory.get_buffer_ptr(self.store), np.uint8)
        self.at = {name: layout(self.store, number) for number, name in enumerate(_LAYOUT)}
        self._counts = self._view(np.uint32, 2 + len(CATEGORIES), "counts")
        self.rows = self._counts[2:]  # of each category, since they were set to 0
        shape = len(CATEGORIES), self.at["width"], self.at["rows"]
        self.columns: Ints = self._view(np.int64, math.prod(shape), "columns").reshape(shape)
        self.text = memoryview(self._view(np.uint8, self.at["most"], "text")).cast("B")
        self.values: dict[tuple[Callable[[bytes], Any], int], Any] = {}

    def read(self, end: int) -> bool:
        """Read the events in ``text[:end]``, and overwrite what is behind them. Their rows come behind those
        of the texts before, if all were accepted: returns whether they were."""
        return bool(self._read(self.store, end))

    def _view(self, kind: type[np.generic], count: int, name: str, offset: int = 0) -> Any:
        return np.frombuffer(self.memory.data, kind, count, self.at[name] + offset)

    @property
    def events(self) -> int:
        """How many there are in the last text."""
        return int(self._counts[0])

    @property
    def texts(self) -> int:
        """How many different texts there are in all that was read."""
        return int(self._counts[1])

    @property
    def full(self) -> bool:
        """Whether the columns should be fetched: long before there may be too little room for the next text,
        since what is short stays in a processor's cache."""
        return bool(self.rows.max() > self.at["rows"] // 8)

    def processes(self) -> list[Any]:
        """Process numbers of the first events in the last text."""
        numbers = self._view(np.uint32, min(self.events, self.at["first"]), "processes")
        return [self.value(number, _scalar) for number in numbers.tolist()]

    def value(self, number: int, meaning: Callable[[bytes], Any]) -> Any:
        """What a text means. Raises Unreadable."""
        key = (meaning, number)
        if key not in self.values:
            at, length = self._view(np.uint32, 2, "strings", _STRING * number).tolist()
            begin = self.at["arena"] + at
            try:
                self.values[key] = meaning(self.memory[begin : begin + length].tobytes())
            except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
                raise Unreadable(str(error)) from None
        return self.values[key]


_scalar = msgspec.json.Decoder(int | str | float | None).decode
_string = msgspec.json.Decoder(str).decode
_integer = msgspec.json.Decoder(int | None).decode
_share = msgspec.json.Decoder(float | None).decode


def _name(raw: bytes) -> str:
    return _string(b'"' + raw + b'"')


def _signature(raw: bytes) -> bytes:
    return raw


def _shape(raw: bytes) -> tuple[Any, ...]:
    grid, block, *numbers, share = raw.split(b"\0")
    return grid, block, *(_integer(one or b"null") for one in numbers), _share(share or b"null")


def into(tables: Tables, machine: Machine | None = None) -> Rows | None:
    """What adds to ``tables``, with a machine of its own if none is given; None where the code cannot run."""
    with contextlib.suppress(Exception):
        if machine is None and (code := compiled()) is not None:
            machine = Machine(*code)
    return None if machine is None else Rows(tables, machine)


def _texts(category: str) -> list[tuple[str, int, Callable[[bytes], Any]]]:
    """Columns of a category that are numbers of texts: where they are, and what such a text means."""
    found: list[tuple[str, int, Callable[[bytes], Any]]] = [("tid", 2, _scalar)]
    if not category.startswith(ARROWS):
        found.append(("name", 3, _name))
    if category == "cpu_op":
        found += [("call_stack", 6, _name), ("signature", 7, _signature)]
    elif category in DEVICE_CATEGORIES:
        found.append(("shape", 9, _shape))
    return found


class Rows:
    """Adds what a machine reads to ``tables``."""

    def __init__(self, tables: Tables, machine: Machine) -> None:
        self.piece = PIECE
        self.tables = tables
        self.machine = machine
        self.odd = 0  # texts in a row that were not accepted
        self._processes: list[Any] = []  # of events that are still in the machine
        self._numbers: dict[tuple[str, str], Ints] = {}  # by category and column: each text's number there

    @property
    def useful(self) -> bool:
        """Whether it is worth trying."""
        return self.odd < _ODD

    def take(self, text: bytes, end: int) -> int | None:
        """Add the events in ``text[:end]``; returns how many they are, used ones and others. None if msgspec
        has to decode them: nothing was added."""
        if not self.useful or end > len(self.machine.text):
            return None
        self.machine.text[:end] = memoryview(text)[:end]
        count = self._read(end)
        return count if count is not None and self._fetched() else None

    def pass_by(self, file: BufferedReader, length: int, whole: bool) -> int:
        """Add the events in the next ``length`` bytes of ``file``, as long as all are accepted. Returns the
        bytes up to the first event that was not added. ``whole``: the last byte is the end of an event."""
        text, added, done, have = self.machine.text, 0, 0, 0
        while self.useful and (more := file.readinto(text[have : min(self.piece, length - done)])):
            have += more
            near = max(0, have - _NEAR)
            if whole and done + have == length:
                end = next_one = have
            elif (found := next(scan.last_ends(bytes(text[near:have])), None)) is not None:
                end, next_one = near + found[0], near + found[1]
            else:
                break
            rest = bytes(text[next_one:have])
            if self._read(end) is None:
                break
            done += next_one
            have = len(rest)
            text[:have] = rest
            if self.machine.full:
                if not self._fetched():
                    return added
                added = done
        return done if self._fetched() else added

    def _read(self, end: int) -> int | None:
        """Read the events in the machine's text up to ``end``: how many they are. None if they were not
        accepted."""
        try:
            if self.machine.read(end):
                if len(self.tables.processes) < FIRST:
                    self._processes += self.machine.processes()
                self.odd = 0
                return self.machine.events
        except Unreadable:
            self.odd = _ODD  # the text stays in the machine
        except Exception as error:
            if not type(error).__module__.startswith("wasmtime"):
                raise
            self.odd = _ODD  # a fault of the code, which nothing but its own memory noticed
        self.odd += 1
        return None

    def _fetched(self) -> bool:
        """Add the events in the machine, which has none then. Returns False if a text of them cannot be read,
        or a fault left them odd: none was added."""
        try:
            if not self.useful:
                return False
            counts = zip(CATEGORIES, self.machine.rows.tolist(), strict=True)
            found = [
                (category, *self._columns(category, self.machine.columns[number, :, :count]))
                for number, (category, count) in enumerate(counts)
                if category and count
            ]
        except Unreadable:
            self.odd = _ODD
            return False
        finally:
            self.machine.rows[:] = 0
        self.tables.processes += self._processes[: FIRST - len(self.tables.processes)]
        self._processes = []
        for category, columns, left_out in found:
            self._add(category, columns, left_out)
        return True

    def _columns(self, category: str, rows: Ints) -> tuple[dict[str, Any], int]:
        """The columns of a category's ``rows`` (the machine's columns, many rows each), and how many were
        left out since their times cannot be. Raises Unreadable."""
        texts = _texts(category)
        possible = is_possible(*rows[:2].view(np.float64))
        left_out = int(np.count_nonzero(~possible))
        if left_out:
            for _, at, meaning in texts:
                for number in np.unique(rows[at, ~possible]).tolist():
                    self.machine.value(number, meaning)
            rows = rows[:, possible]
        columns: dict[str, Any] = {field: rows[at].view(np.float64).copy() for at, field in enumerate(TIMES)}
        for field, at, meaning in texts:
            columns[field] = self._numbered(category, field, rows[at], meaning)
        numbers = ("id",) if category.startswith(ARROWS) else NUMBERS.get(category, ())
        for at, field in enumerate(numbers, _NUMBERS_FROM):
            columns[field] = rows[at].copy()
        return columns, left_out

    def _numbered(self, category: str, field: str, texts: Ints, meaning: Callable[[bytes], Any]) -> Ints:
        """The number of each row's value in the table. Raises Unreadable."""
        known = self._numbers.get((category, field))
        if known is None or len(known) < self.machine.texts:
            more = np.full(self.machine.texts + 1024, -1, np.int64)
            more[: 0 if known is None else len(known)] = -1 if known is None else known
            known = self._numbers[category, field] = more
        found: Ints = known[texts]
        if len(found) and found.min() < 0:
            new = in_order(texts[found < 0], len(known))
            values = [self.machine.value(number, meaning) for number in new.tolist()]
            known[new] = self.tables.table(category).values[field].all(values)
            found = known[texts]
        return found

    def _add(self, category: str, columns: dict[str, Any], left_out: int) -> None:
        table: Table = self.tables.table(category)
        table.length += len(columns["ts"])
        for field, column in columns.items():
            table.columns[field].pieces.append(column)
        self.tables.left_out += left_out
