"""Chrome trace -> typed events, piece by piece, with the garbage collector out of the way.

msgspec reads only the fields named here and skips the rest, so a 500 MB trace takes seconds and not minutes.
Input shapes stay raw JSON, and each of the few distinct ones is parsed once. Only one piece of the text is in
memory at a time. A piece that cannot be decoded as a whole is split into its events (``scan.py``), so that
only malformed events are lost.
"""

from __future__ import annotations

import codecs
import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec

from warpline.model.problem import Problem
from warpline.trace import scan
from warpline.trace.unpack import Text, opened

PIECE = 256 << 10  # bytes: a decoded piece fits into a processor's cache
#: Limits, so that a small file that unpacks to a huge one cannot use all the memory: events, bytes of one
#: event, bytes before and after the list of events.
MOST_EVENTS, LONGEST_EVENT, LONGEST_HEAD = 20_000_000, 16 << 20, 64 << 20
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,18})\b')
LATEST_NS = 1 << 62  # in the year 2116
_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

#: Integers that fit into a column. An event with a larger number is malformed.
Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class Arguments(msgspec.Struct, gc=False, frozen=True):
    """``args`` of an event: the union of what Kineto writes for all the categories.

    In Kineto's order, as the fields of an event are: msgspec looks for the next field behind the last one.
    """

    sequence: Integer = msgspec.field(default=-1, name="Sequence number")
    forward_thread: Integer = msgspec.field(default=0, name="Fwd thread id")
    values: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Concrete Inputs")
    types: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    strides: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Strides")
    dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    call_stack: str = msgspec.field(default="", name="Call stack")
    device: Integer = 0
    stream_id: Integer | str = msgspec.field(default=0, name="stream")  # ROCm's calls have an address: "0x0"
    correlation: Integer = -1
    copied: Integer = msgspec.field(default=0, name="bytes")
    registers: int | None = msgspec.field(default=None, name="registers per thread")
    shared: int | None = msgspec.field(default=None, name="shared memory")
    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    occupancy: float | None = msgspec.field(default=None, name="est. achieved occupancy %")
    graph_node: Integer = msgspec.field(default=0, name="graph node id")
    total: Integer = msgspec.field(default=0, name="Total Allocated")
    allocated: Integer = msgspec.field(default=0, name="Bytes")
    device_id: Integer = msgspec.field(default=0, name="Device Id")
    device_type: Integer = msgspec.field(default=0, name="Device Type")
    address: Integer = msgspec.field(default=0, name="Addr")

    @property
    def stream(self) -> int:
        """The stream's number; 0 where it has none."""
        return self.stream_id if isinstance(self.stream_id, int) else 0


NO_ARGUMENTS = Arguments()


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | float | None = 0
    tid: int | str | float | None = 0
    ts: float = 0.0
    dur: float = 0.0
    args: Arguments = NO_ARGUMENTS
    id: int | str | None = 0


class Chrome(msgspec.Struct):
    """The file. ``base_ns`` is added to every time stamp (microseconds) to get unix time."""

    events: list[Event] = msgspec.field(name="traceEvents", default_factory=list)
    base_ns: int = msgspec.field(default=0, name="baseTimeNanoseconds")
    devices: tuple[dict[str, Any], ...] = msgspec.field(default=(), name="deviceProperties")
    distributed: dict[str, Any] = msgspec.field(default_factory=dict, name="distributedInfo")


@dataclass(slots=True)
class Damage:
    """The parts of a trace that could not be read as they are."""

    left_out: int = 0  # malformed events
    mended: int = 0  # events with bytes that are not valid text
    cut: bool = False  # the file ends, or unpacking it fails, before the end of the trace
    too_many: bool = False

    def notes(self) -> list[str]:
        """Notes for the report: what was wrong with the trace, and how it was handled."""
        found = []
        if self.left_out:
            events = "event of the trace was" if self.left_out == 1 else "events of the trace were"
            found.append(f"{self.left_out} malformed {events} left out")
        if self.mended:
            events = "event of the trace is" if self.mended == 1 else "events of the trace are"
            found.append(
                f"{self.mended} {events} not valid UTF-8: invalid bytes are shown as "
                "\N{REPLACEMENT CHARACTER}"
            )
        if self.cut:
            found.append("the trace is cut off: the events before that were used")
        if self.too_many:
            found.append(f"the trace has more than {MOST_EVENTS:,} events: only these were used")
        return found


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable garbage collection: decoding makes millions of objects that all stay alive, so it would free
    none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Quick(Protocol):
    """What reads most pieces of a trace without making events: ``rows.Rows``."""

    piece: int  # bytes of the pieces

    @property
    def useful(self) -> bool:
        """Whether it is worth asking."""

    def take(self, text: bytes, end: int, /) -> int | None:
        """How many events of ``text[:end]`` were taken; None if they have to be decoded."""

    def pass_by(self, file: BufferedReader, length: int, whole: bool, /) -> int:
        """Take some of the next ``length`` bytes. Returns how many: whole events, each with its comma, but
        for the last one of all where ``whole`` says that nothing else follows it."""


def decode(
    path: Path, take: Callable[[list[Event]], None], quick: Quick | None = None
) -> tuple[Chrome, Damage]:
    """Pass the events of the trace in ``path`` (JSON or gzipped JSON) to ``take``, piece by piece; those that
    ``quick`` takes are not passed.

    Returns the rest of the file, and what was wrong with it. Raises Problem if it is not a Chrome trace.
    """
    try:
        with collector_paused(), opened(path) as file:
            chrome, damage = _Reading(path, file, take, quick).all()
    except (OSError, EOFError) as error:
        raise Problem(f"cannot read {path}: {error}") from None
    if not 0 <= chrome.base_ns < LATEST_NS:
        chrome.base_ns = 0
    return chrome, damage


def head_of(path: Path) -> bytes:
    """The text of the Chrome trace in ``path`` up to its first event. Raises Problem."""
    with opened(path) as file:
        return _Reading(path, file, _ignore).head()[0]


def decode_cleanly(
    path: Path, part: Part, take: Callable[[list[Event]], None], quick: Quick | None = None
) -> Chrome | None:
    """Pass the events of one part of a file to ``take``, but for those that ``quick`` takes. Returns the rest
    of the file if the part is the last one.

    Raises Unclean if anything in the part is not in Kineto's form.
    """
    with path.open("rb") as file:
        try:
            chrome = _Reading(path, file, take, quick).cleanly(part, file)
        except (Problem, EOFError, *_MALFORMED) as error:
            raise Unclean(str(error)) from None
    if chrome is not None and not 0 <= chrome.base_ns < LATEST_NS:
        raise Unclean("a base time that cannot be")
    return chrome


class Unclean(Exception):
    """A part of a trace cannot be decoded by itself: the trace has to be read from its beginning."""


class Part(NamedTuple):
    """Bytes ``begin`` to ``end`` of a file: whole events, with commas between them.

    The last part also has the text after the events. ``head``: for the last part, the number of bytes before
    the first event; else 0.
    """

    begin: int
    end: int
    head: int = 0


def _ignore(_: list[Event]) -> None:
    pass


class _Reading:
    """One pass through a file."""

    def __init__(
        self, path: Path, file: Text, take: Callable[[list[Event]], None], quick: Quick | None = None
    ) -> None:
        self.path, self.file, self.take, self.quick = path, file, take, quick
        self.damage = Damage()
        self.count = 0
        self.bare = False  # a list of events alone, without the object around it
        self.list = msgspec.json.Decoder(list[Event]).decode
        self.one = msgspec.json.Decoder(Event).decode

    def all(self) -> tuple[Chrome, Damage]:
        """The whole trace: its head, its events by piece, and what was damaged."""
        head, rest = self.head()
        enough = 0  # bytes; a text without the end of an event is searched again once it is twice as long
        while more := self._more():
            rest += more
            if len(rest) < enough:
                continue
            if (left := self._whole_events(rest)) is not None:
                rest, enough = left, 0
            else:
                rest, ended = self._one_by_one(rest)
                if ended:
                    return self._tail(head, rest), self.damage
                enough = 2 * len(rest)
            if self.count > MOST_EVENTS:
                self.damage.too_many = True
                return self._header(head), self.damage
        return self._last(head, rest), self.damage

    def cleanly(self, part: Part, file: BufferedReader) -> Chrome | None:
        """Decode only ``part``. Raises Unclean, or a decoding error."""
        file.seek(part.begin)
        length = part.end - part.begin
        passed = self.quick.pass_by(file, length, not part.head) if self.quick is not None else 0
        file.seek(part.begin + passed)
        rest, left = b"", length - passed
        while left:
            more = file.read(min(self._piece(), left))
            left -= len(more)
            whole = self._whole_events(rest + more) if left and more else rest + more
            if whole is None or (left and not more):
                raise Unclean("an event without an end")
            rest = whole
        if not part.head:
            self._given(self.list(b"".join((b"[", rest, b"]"))))
            return None
        file.seek(0)
        chrome = msgspec.json.decode(file.read(part.head) + rest, type=Chrome)
        self._given(chrome.events)
        chrome.events = []
        return chrome

    def _piece(self) -> int:
        return self.quick.piece if self.quick is not None and self.quick.useful else PIECE

    def _more(self) -> bytes:
        try:
            return self.file.read(self._piece())
        except EOFError:
            self.damage.cut = True
            return b""

    def head(self) -> tuple[bytes, bytes]:
        """The text up to the first event, and the first piece after it."""
        text = self.file.read(PIECE).removeprefix(codecs.BOM_UTF8)
        if text[:64].lstrip()[:1] == b"[":
            self.bare = True
            return b'{"traceEvents":[', text.lstrip()[1:]
        looked = 0
        while (begin := _EVENTS.search(text, looked)) is None:
            looked = max(0, len(text) - 64)
            more = self._more()
            if not more or len(text) > LONGEST_HEAD or text.lstrip()[:1] != b"{":
                raise Problem(f"{self.path} is not a Chrome trace: it has no list of traceEvents")
            text += more
        return text[: begin.end()], text[begin.end() :]

    def _given(self, events: list[Event]) -> None:
        self.count += len(events)
        self.take(events)

    def _whole_events(self, text: bytes) -> bytes | None:
        """Take all events that end in ``text`` at once. Returns the rest of it; None if they cannot be
        decoded together."""
        for end, next_one in scan.last_ends(text):
            if self.quick is not None and (count := self.quick.take(text, end)) is not None:
                self.count += count
                return text[next_one:]
            try:
                events = self.list(b"".join((b"[", memoryview(text)[:end], b"]")))
            except _MALFORMED:
                continue
            self._given(events)
            return text[next_one:]
        return None

    def _one_by_one(self, text: bytes) -> tuple[bytes, bool]:
        """Take the events that end in ``text`` one by one. Returns the rest, and whether their list has
        ended."""
        found = scan.split(text)
        self._given([event for raw in found.events if (event := self._event(raw)) is not None])
        rest = found.rest
        if not found.ended and len(rest) > LONGEST_EVENT:
            end = scan.EVENT_ENDS.search(rest)
            if end is None:
                raise Problem(f"{self.path} is not a Chrome trace: an event of it has no end")
            self.damage.left_out += 1
            rest = rest[end.end() - 1 :]
        return rest, found.ended

    def _event(self, raw: bytes) -> Event | None:
        try:
            return self.one(raw)
        except _MALFORMED:
            pass
        try:
            event = self.one(scan.mended(raw))
        except _MALFORMED:
            self.damage.left_out += 1
            return None
        self.damage.mended += 1
        return event

    def _last(self, head: bytes, rest: bytes) -> Chrome:
        """The end of the file: the last events and the text after them."""
        try:
            chrome = msgspec.json.decode(head + rest + (b"}" if self.bare else b""), type=Chrome)
        except _MALFORMED:
            rest, ended = self._one_by_one(rest)
            if ended:
                return self._tail(head, rest)
            self.damage.cut = True
            return self._header(head)
        self._given(chrome.events)
        chrome.events = []
        return chrome

    def _tail(self, head: bytes, rest: bytes) -> Chrome:
        while len(rest) <= LONGEST_HEAD and (more := self._more()):
            rest += more
        if self.bare:
            return Chrome()
        try:
            return msgspec.json.decode(scan.mended(head + b"]" + rest), type=Chrome)
        except _MALFORMED:
            self.damage.cut = True
            return self._header(head)

    def _header(self, head: bytes) -> Chrome:
        try:
            return msgspec.json.decode(scan.mended(head + b"]}"), type=Chrome)
        except _MALFORMED:
            base = _BASE.search(head)
            return Chrome(base_ns=int(base[1]) if base is not None else 0)
