"""Reads the trace of a running script while it grows.

A long capture on a CPU pauses now and then: the profiler is stopped, and what it recorded is written behind
what was written before. Stopping takes several times as long as reading. So what lies there from the pause
before is read meanwhile, when nothing is measured that this could disturb, and only what the last pauses add
is left for the end.
"""

from __future__ import annotations

import contextlib
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from warpline.trace import decode, ranges
from warpline.trace.decode import Chrome, Part, Unclean
from warpline.trace.events import Tables
from warpline.trace.readers import Reader
from warpline.wire.processors import cores


class Ahead:
    """``heard`` for each pause, ``tables`` once the run is complete. Use as a context manager."""

    def __init__(self) -> None:
        self._beside = ThreadPoolExecutor(1, "warpline-ahead")
        self._last: Future[None] | None = None
        self._readers: list[Reader] = []
        self._whole = Tables()
        self._head = b""
        self._end = 0  # bytes of the trace that were read
        self._possible = cores() > 1 and bool(sys.executable)  # else it would only prolong the pause

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers:
            reader.kill()  # first, so that the thread waits for none
        self._beside.shutdown()
        self._give_up()

    def heard(self, path: Path, end: int) -> None:
        """A pause begins. The first ``end`` bytes of the trace ``path`` are complete, up to the end of an
        event. They are read in the background."""
        if self._possible:
            self._last = self._beside.submit(self._read, path, end)

    def tables(self, path: Path) -> tuple[Tables, Chrome] | None:
        """The events of the complete trace in ``path`` and the rest of the file, as ``ranges.together`` has
        them; None if nothing was read before, or anything in it is odd. This can be asked for once."""
        if self._last is None:
            return None
        with contextlib.suppress(*ranges.ERRORS), ranges.limited(path, self._kill):
            self._last.result()
            if self._possible and self._end:
                return self._rest(path)
        return None

    def _rest(self, path: Path) -> tuple[Tables, Chrome]:
        with path.open("rb") as file:
            if file.read(len(self._head)) != self._head:
                raise Unclean("another trace")
            file.seek(self._end)
            begin = self._end + (file.read(1) == b",")  # nothing follows it if the last recording was lost
        parts = ranges.split(path, begin)
        if not parts:
            raise Unclean("no ends of events")
        if len(parts) * ranges.PART >= ranges.SMALLEST:  # a single step may have that many events
            while len(self._readers) < min(len(parts), cores(), ranges.MOST_PROCESSES):
                self._readers.append(Reader())
        return ranges.merged(self._whole, ranges.read(path, parts, self._readers))

    def _read(self, path: Path, end: int) -> None:
        """Read up to ``end``, on the thread beside."""
        try:
            if not self._possible:
                return
            if not self._readers:
                self._readers.append(Reader())
            if end < self._end:  # another capture has begun
                self._whole, self._end = Tables(), 0
            if end == self._end:
                return
            if not self._end:
                self._head = decode.head_of(path)
            elif not self._goes_on(path):
                raise Unclean("no comma between events")
            reader = self._readers[0]
            reader.ask(path, Part(self._end + 1 if self._end else len(self._head), end))
            ranges.merged(self._whole, [reader.answer()])
            self._end = end
        except ranges.ERRORS:
            self._give_up()

    def _goes_on(self, path: Path) -> bool:
        with path.open("rb") as file:
            file.seek(self._end)
            return file.read(1) == b","

    def _kill(self) -> None:
        for reader in self._readers:
            reader.kill()

    def _give_up(self) -> None:
        self._possible = False
        for reader in self._readers:
            reader.end()
        self._readers = []
        self._whole = Tables()
