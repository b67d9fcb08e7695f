"""Reads a large uncompressed trace with several threads or processes; each decodes parts of some megabytes.

The result is the same as from one. This works for intact traces in Kineto's form only. If any part is cut or
malformed, one thread reads the whole trace, and handles the damage. Processes read where the compiled code of
``rows.py`` cannot run, since msgspec holds the interpreter's lock.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from warpline.model.problem import Problem
from warpline.trace import decode, rows, scan
from warpline.trace.decode import Chrome, Damage, Part, Unclean
from warpline.trace.events import Tables
from warpline.trace.readers import Reader
from warpline.trace.rows import Rows
from warpline.trace.unpack import is_packed
from warpline.wire.processors import cores

#: Bytes of a part: so few that the processes end at about the same time, and little waits to be merged.
PART = 24 << 20
SMALLEST = 4 * PART  # bytes of a file. Starting a process takes 0.17 s, in which one reads 40 MB
MOST_PROCESSES = 8  # with more, merging takes longer than reading
#: Time limit for the processes: ``LIMIT_S`` seconds, and one more for every ``SLOWEST`` bytes of the file. A
#: slow disk takes far less.
LIMIT_S, SLOWEST = 60.0, 1 << 20
_UNPACKED = 10  # times as long as packed, about
_TURN_S = 5e-5  # of a thread, while others wait for the interpreter's lock
_WINDOW = 1 << 16  # bytes in which the end of an event is looked for
#: Why the parts of a trace cannot be read by themselves. The last three: the answer of a process begins with
#: what another module printed.
ERRORS: tuple[type[Exception], ...] = (
    OSError, Problem, Unclean, msgspec.MsgspecError, MemoryError, OverflowError,
)  # fmt: skip

T = TypeVar("T")


def tables_of(
    path: Path,
    processes: int | None = None,
    found: tuple[Tables, Chrome] | None = None,
    pool: Pool | None = None,
) -> tuple[Tables, Chrome, list[str]]:
    """The events of a trace, the rest of the file, and notes on parts that could not be read.

    Raises Problem. ``processes``: how many may read it at once; None: one for each core. ``found``: the first
    two, if they were read before. ``pool``: processes that may be running already, and threads that may be
    reading ``path``.
    """
    if found is None and pool is not None and pool.has_begun(path):
        found = pool.begun()
    elif found is None:
        found = together(path, cores() if processes is None else processes, pool)
    if found is not None:
        return *found, Damage(left_out=found[0].left_out).notes()
    tables = Tables()
    chrome, damage = decode.decode(path, tables.take, _quick(path, tables))
    damage.left_out += tables.left_out
    return tables, chrome, damage.notes()


def _quick(path: Path, tables: Tables) -> Rows | None:
    """What reads most of a file, if that is worth starting."""
    with contextlib.suppress(OSError):
        if path.stat().st_size * (_UNPACKED if is_packed(path) else 1) >= rows.SMALLEST:
            return rows.into(tables)
    return None


def together(path: Path, processes: int, pool: Pool | None = None) -> tuple[Tables, Chrome] | None:
    """The events of the trace in ``path`` and the rest of the file, read by up to ``processes`` threads or
    processes; None if one has to read all of it."""
    with contextlib.ExitStack() as ended:
        try:
            if not is_large(path, processes):
                return None
            parts = split(path)
            if len(parts) < 2:
                return None
            count = min(processes, len(parts), MOST_PROCESSES)
            if rows.compiled() is not None:
                answers = in_threads(path, parts, count)
            else:
                pool = pool or ended.enter_context(Pool())
                answers = read(path, parts, pool.started(count))
            return merged(Tables(), answers if pool is None else pool.wanted(answers))
        except ERRORS:
            if pool is not None:
                pool.end()
            return None


def in_threads(path: Path, parts: Sequence[Part], count: int) -> Iterator[tuple[Tables, Chrome | None]]:
    """What each of ``parts`` has, in their order, read by ``count`` threads. Raises what reading raises."""
    machines: queue.SimpleQueue[rows.Machine | None] = queue.SimpleQueue()
    for _ in range(count):
        machines.put(None)

    def part_of(part: Part) -> tuple[Tables, Chrome | None]:
        machine, tables, kept = machines.get(), Tables(), None
        try:
            quick = rows.into(tables, machine)
            chrome = decode.decode_cleanly(path, part, tables.take, quick)
            kept = quick.machine if quick is not None and quick.useful else None
        finally:
            machines.put(kept)  # else another part would wait for it for ever
        return tables, chrome

    threads = ThreadPoolExecutor(count, "warpline-reading")
    try:
        yield from threads.map(part_of, parts)
    finally:
        threads.shutdown(cancel_futures=True)


def is_large(path: Path, processes: int) -> bool:
    """Whether several of ``processes`` should read the file. Raises OSError."""
    several = processes > 1 and bool(sys.executable)
    return several and path.stat().st_size >= SMALLEST and not is_packed(path)


class Pool:
    """Processes that read traces, which are kept for the next one, and threads that read one trace while this
    one does something else. Use as a context manager, in which threads take brief turns."""

    def __init__(self) -> None:
        self.readers: list[Reader] = []
        self._beside = ThreadPoolExecutor(1, "warpline-begun")
        self._found: tuple[Path, Future[tuple[Tables, Chrome] | None]] | None = None
        self._ended = contextlib.ExitStack()
        self._in_use = True

    def __enter__(self) -> Pool:
        self._ended.enter_context(brief_turns())
        return self

    def __exit__(self, *_: object) -> None:
        self._in_use = False
        self._beside.shutdown(cancel_futures=True)
        self.end()
        self._ended.close()

    def begin(self, path: Path) -> bool:
        """Begin to read ``path``, if several should read it; returns whether they do. Ask for it before this
        process has other threads (``may_fork``), and before the imports that can be done meanwhile."""
        with contextlib.suppress(OSError):
            if not self.has_begun(path) and is_large(path, cores()):
                if not rows.installed():
                    self.started(cores())
                self._found = path, self._beside.submit(together, path, cores(), self)
        return self.has_begun(path)

    def has_begun(self, path: Path) -> bool:
        """Whether :meth:`begun` tells of this trace."""
        return self._found is not None and self._found[0] == path

    def begun(self) -> tuple[Tables, Chrome] | None:
        """What was begun, when it is there; see :func:`together`. It can be asked for once."""
        assert self._found is not None
        (_, found), self._found = self._found, None
        return found.result()

    def wanted(self, answers: Iterable[T]) -> Iterator[T]:
        """The ``answers``, as long as this is in use. Raises Unclean then."""
        for each in answers:
            if not self._in_use:
                raise Unclean("not wanted any more")
            yield each

    def started(self, count: int) -> list[Reader]:
        """That many processes, fewer if they are too many. Raises OSError."""
        count = min(count, MOST_PROCESSES)
        while len(self.readers) < count:
            self.readers.append(Reader())
        return self.readers[:count]

    def end(self) -> None:
        """End all of them."""
        for reader in self.readers:
            reader.end()
        self.readers = []


def split(path: Path, begin: int = 0) -> list[Part]:
    """Parts of about ``PART`` bytes, which end where events seem to end; [] if no such ends are found.

    ``begin``: where an event begins, if those before it are not wanted.
    """
    head, size = decode.head_of(path), path.stat().st_size
    begin = begin or len(head)
    bounds: list[int] = [begin]
    with path.open("rb") as file:
        if file.read(len(head)) != head:  # a bare list of events
            return []
        for at in range(begin + PART, size - PART // 2, PART):
            file.seek(at)
            found = scan.first_end(file.read(_WINDOW))
            if found is None:
                return []
            bounds += [at + found[0], at + found[1]]
    begins, ends = bounds[::2], [*bounds[1::2], size]
    return [
        Part(begin, end, len(head) if end == size else 0) for begin, end in zip(begins, ends, strict=True)
    ]


def read(
    path: Path, parts: Sequence[Part], readers: Sequence[Reader]
) -> Iterator[tuple[Tables, Chrome | None]]:
    """What each of ``parts`` has, in their order; ``readers`` are asked in turns. Those are killed if they do
    not answer within the time limit. Raises what ``Reader`` raises."""
    ahead = 2 * len(readers)

    def late() -> None:
        for reader in readers:
            reader.kill()

    with limited(path, late):
        for at, part in enumerate(parts[:ahead]):
            readers[at % len(readers)].ask(path, part)
        for at in range(len(parts)):
            found = readers[at % len(readers)].answer()
            if at + ahead < len(parts):
                readers[at % len(readers)].ask(path, parts[at + ahead])
            yield found


@contextmanager
def brief_turns() -> Iterator[None]:
    """Let threads take turns with the interpreter's lock after less time than Python's 5 ms. A thread that
    reads asks for it again after each piece, and would wait for so long for one that only computes."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, _TURN_S))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@contextmanager
def limited(path: Path, late: Callable[[], None]) -> Iterator[None]:
    """Call ``late`` if the block takes longer than reading ``path`` may take."""
    limit = threading.Timer(LIMIT_S + path.stat().st_size / SLOWEST, late)
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def merged(whole: Tables, answers: Iterable[tuple[Tables, Chrome | None]]) -> tuple[Tables, Chrome]:
    """``whole`` with the tables of the parts that come after it, and the rest of the file. Raises Unclean if
    these are too many events."""
    rest = Chrome()
    for tables, chrome in answers:
        whole.extend(tables)
        if sum(map(len, whole.of.values())) > decode.MOST_EVENTS:
            raise Unclean("too many events")
        rest = chrome or rest
    return whole, rest
