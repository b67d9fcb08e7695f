"""Chrome trace -> typed events, piece by piece, with the garbage collector out of the way.

msgspec reads only the fields named here and skips the rest, so a 500 MB trace costs seconds and
not minutes. Input shapes stay raw JSON: there are few distinct ones, so they are parsed once each.
"""

from __future__ import annotations

import gc
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec

from warpline.model.problem import Problem

GZIP_MAGIC = b"\x1f\x8b"
PIECE = 256 << 10  # bytes: what is made of them fits in a processor's cache
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = b"\n  },\n"  # how Kineto goes from one event to the next; no string of JSON has a line feed in it
_MALFORMED = (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError)


class Arguments(msgspec.Struct, gc=False, frozen=True):
    """``args`` of an event: the union of what Kineto writes for all the categories."""

    external: int | None = msgspec.field(default=None, name="External id")
    sequence: int = msgspec.field(default=-1, name="Sequence number")
    forward_thread: int = msgspec.field(default=0, name="Fwd thread id")
    dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    strides: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Strides")
    values: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Concrete Inputs")
    correlation: int = -1
    device: int = 0
    stream: int = 0
    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    registers: int | None = msgspec.field(default=None, name="registers per thread")
    shared: int | None = msgspec.field(default=None, name="shared memory")
    occupancy: float | None = msgspec.field(default=None, name="est. achieved occupancy %")
    graph_node: int = msgspec.field(default=0, name="graph node id")
    copied: int = msgspec.field(default=0, name="bytes")
    allocated: int = msgspec.field(default=0, name="Bytes")
    address: int = msgspec.field(default=0, name="Addr")
    device_type: int = msgspec.field(default=0, name="Device Type")
    device_id: int = msgspec.field(default=0, name="Device Id")
    total: int = msgspec.field(default=0, name="Total Allocated")
    python_id: int = msgspec.field(default=-1, name="Python id")
    python_parent: int | None = msgspec.field(default=-1, name="Python parent id")
    call_stack: str = msgspec.field(default="", name="Call stack")


NO_ARGUMENTS = Arguments()


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | str | float | None = 0
    tid: int | str | float | None = 0
    ts: float = 0.0
    dur: float = 0.0
    id: int | str | None = 0
    args: Arguments = NO_ARGUMENTS


class Chrome(msgspec.Struct):
    """The file. ``base_ns`` is added to every time stamp (microseconds) to get unix time."""

    events: list[Event] = msgspec.field(name="traceEvents")
    base_ns: int = msgspec.field(default=0, name="baseTimeNanoseconds")
    devices: tuple[dict[str, Any], ...] = msgspec.field(default=(), name="deviceProperties")
    distributed: dict[str, Any] = msgspec.field(default_factory=dict, name="distributedInfo")


class _Loose(msgspec.Struct):
    """The same with events unread, for the file in which some event is malformed."""

    events: list[msgspec.Raw] = msgspec.field(name="traceEvents")
    base_ns: int = msgspec.field(default=0, name="baseTimeNanoseconds")
    devices: Any = msgspec.field(default=(), name="deviceProperties")


@contextmanager
def collector_paused() -> Iterator[None]:
    """Millions of young objects that all live: every collection would be for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def decode(path: Path, take: Callable[[list[Event]], None], forget: Callable[[], None]) -> tuple[Chrome, int]:
    """Hand the events of the trace in ``path`` (JSON or gzipped JSON) to ``take``, piece by piece.

    Returns the rest of the file and the number of malformed events left out. ``forget``: what was taken
    so far comes again. Raises Problem when the file is no Chrome trace at all.
    """
    try:
        with collector_paused():
            with _opened(path) as file:
                chrome = _in_pieces(file, take)
            if chrome is not None:
                return chrome, 0
            forget()
            return _whole(path, text(path), take)
    except (OSError, EOFError, zlib.error) as error:
        raise Problem(f"cannot read {path}: {error}") from None


def text(path: Path) -> bytes:
    """The whole trace as one JSON object, unpacked. Raises OSError, EOFError, zlib.error."""
    with _opened(path) as file:
        data = file.read()
    return b'{"traceEvents":' + data + b"}" if data[:64].lstrip()[:1] == b"[" else data


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    return gzip.open(path) if packed else path.open("rb")


def _in_pieces(file: gzip.GzipFile | BufferedReader, take: Callable[[list[Event]], None]) -> Chrome | None:
    """None where the text is not laid out as Kineto does it, or something in it is malformed."""
    rest = file.read(PIECE)
    begin = _EVENTS.search(rest)
    if begin is None:
        return None
    head, rest = rest[: begin.end()], rest[begin.end() :]
    read = msgspec.json.Decoder(list[Event]).decode
    try:
        while more := file.read(PIECE):
            rest += more
            cut = rest.rfind(_BETWEEN)
            if cut < 0:
                return None
            take(read(b"[" + rest[: cut + 4] + b"]"))
            rest = rest[cut + 5 :]
        chrome = msgspec.json.decode(head + rest, type=Chrome)
    except _MALFORMED:
        return None
    take(chrome.events)
    chrome.events.clear()
    return chrome


def _whole(path: Path, data: bytes, take: Callable[[list[Event]], None]) -> tuple[Chrome, int]:
    try:
        chrome, bad = msgspec.json.decode(data, type=Chrome), 0
    except _MALFORMED:
        chrome, bad = _one_by_one(path, data)
    take(chrome.events)
    chrome.events.clear()
    return chrome, bad


def _one_by_one(path: Path, data: bytes) -> tuple[Chrome, int]:
    try:
        loose = msgspec.json.decode(data, type=_Loose)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Problem(f"{path} is not a Chrome trace: {error}") from None
    read = msgspec.json.Decoder(Event).decode
    events, bad = [], 0
    for raw in loose.events:
        try:
            events.append(read(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            bad += 1
    devices = loose.devices if isinstance(loose.devices, list) else ()
    return Chrome(events, loose.base_ns, tuple(d for d in devices if isinstance(d, dict))), bad
