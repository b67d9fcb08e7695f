"""The table of locations, and the records that point into it."""

from __future__ import annotations

import sys
import threading
from array import array
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any

from ....wire.records import AGAIN, PAIR_BYTES, THREAD_SHIFT

if TYPE_CHECKING:
    from ..inside.locations import InsideLines, LibraryLines
    from .marks import LineMarks
    from .names import QualifiedNames
    from .userfiles import UserFiles

#: Code inside a statement of other code: when it starts, that statement's line has already begun.
WITHIN = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})

_active: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]


class Locations:
    """Numbers each ``(file, line, function)``; number 0 stands for code outside the user's files."""

    def __init__(self, user_files: UserFiles, names: QualifiedNames) -> None:
        self.user_files = user_files
        self.names = names
        self.files: dict[str, int] = {}  # path -> index
        self.functions: dict[tuple[str, int, str], int] = {}  # (path, first line, name) -> index
        self.table = [(-1, 0, -1)]
        self.of_code: dict[int, CodeLines] = {}  # by id(code)
        self.standing: list[CodeType] = []  # kept alive, or other code could get the same id
        #: id(code) -> what is recorded when a line of it begins, by line
        self.begun: dict[int, CodeLines | BegunWithin] = {}
        #: By thread ident; idents are used again once a thread has ended
        self.threads: dict[int, Records] = {}
        self.all_records: list[Records] = []
        self.marks: LineMarks | None = None
        self.library: LibraryLines | None = None  # where lines of libraries are recorded too
        self.local = threading.local()
        self.lock = threading.Lock()

    def lines_of(self, code: CodeType) -> CodeLines | None:
        """The CodeLines of a user's code object; None for any other."""
        try:
            return self.of_code[id(code)]
        except KeyError:
            pass
        path = self.user_files[code.co_filename]
        if path is None:
            return None
        with self.lock:
            found = self.of_code.get(id(code))
            if found is None:
                file = self.files.setdefault(path, len(self.files))
                key = (path, code.co_firstlineno, self.names.of(code, path))
                function = self.functions.setdefault(key, len(self.functions))
                found = CodeLines(self, code, file, function)
                self.begun[id(code)] = BegunWithin(found) if code.co_name in WITHIN else found
                self.of_code[id(code)] = found
        return found

    def stands_for(self, other: CodeType, code: CodeType) -> None:
        """Record ``other`` under the locations of ``code``."""
        self.standing.append(other)
        self.of_code[id(other)] = self.of_code[id(code)]
        self.begun[id(other)] = self.begun[id(code)]

    def codes(self) -> list[CodeType]:
        """Code of the user's files that ran while lines were recorded."""
        return [lines.code for lines in self.of_code.values()]

    def add(self, file: int, line: int | None, function: int) -> int:
        """The number of a line in the table. Any thread may ask."""
        with self.lock:
            self.table.append((file, line or 0, function))
            return len(self.table) - 1

    def as_dict(self) -> dict[str, Any]:
        """The ``Locations`` of the run folder."""
        return {
            "files": list(self.files),
            "functions": [name for _, _, name in self.functions],
            "locations": self.table,
            "threads": [records.native for records in self.all_records],
        }

    def mark_with(self, marks: LineMarks) -> None:
        """Let ``marks`` (LineMarks) write a range for each record as well."""
        self.marks = marks
        for records in self.all_records:
            records.add = marks.adding(records.pairs)

    def packed(self) -> bytes:
        """All threads' records as bytes, one thread after the other."""
        return b"".join(records.packed(records.pairs) for records in self.all_records)

    def packed_library(self) -> bytes:
        """The same for lines of libraries."""
        return b"".join(records.packed(records.library) for records in self.all_records)

    def python_threads(self) -> int:
        """Number of threads, made by ``threading``, on which lines of the user's have run."""
        return sum(1 for records in self.all_records if records.python and records.pairs)

    def forget_all_but_last(self) -> int:
        """Drop all records except the last of each thread, which says where it is; returns their number."""
        count = 0
        for records in self.all_records:
            count += len(records.pairs) // 2
            for pairs in (records.pairs, records.library):
                del pairs[: max(0, _whole(pairs) - 2)]
        return count

    def move_back(self, by_ns: int) -> None:
        """Make all records earlier by that much."""
        for records in self.all_records if by_ns else ():
            for pairs in (records.pairs, records.library):
                end = len(pairs)  # a thread may add one more meanwhile
                pairs[0:end:2] = array("q", [time_ns - by_ns for time_ns in pairs[0:end:2]])

    def clear_records(self) -> None:
        """Forget all records; the lists stay, as their threads hold them."""
        for records in self.all_records:
            for pairs in (records.pairs, records.library):
                del pairs[: _whole(pairs)]

    def records(self, ident: int | None = None) -> Records:
        """The Records of the thread ``ident``, of the calling one by default."""
        if ident is not None and ident != threading.get_ident():
            return self._of_ident(ident, getattr(_active.get(ident), "native_id", None) or 0)
        try:
            known: Records = self.local.records
            return known
        except AttributeError:
            found = self._of_ident(threading.get_ident(), threading.get_native_id())
            self.local.records = found
            return found

    def _of_ident(self, ident: int, native: int) -> Records:
        with self.lock:
            found = self.threads.get(ident)
            if found is None or native not in (0, found.native):
                thread = _active.get(ident)  # a thread of autograd's is not in there
                python = thread is not None and not isinstance(thread, threading._DummyThread)
                found = self.threads[ident] = Records(native, len(self.all_records), python)
                self.all_records.append(found)
                if self.marks is not None:
                    found.add = self.marks.adding(found.pairs)
            return found


class CodeLines(dict[int, int]):
    """Line -> location within one code object, which it keeps alive (its id is a key)."""

    __slots__ = ("code", "file", "function", "locations")

    def __init__(self, locations: Locations, code: CodeType, file: int, function: int) -> None:
        super().__init__()
        self.locations = locations
        self.code = code
        self.file = file
        self.function = function

    def __missing__(self, line: int) -> int:
        found = self[line] = self.locations.add(self.file, line, self.function)
        return found


class BegunWithin(dict[int, int]):
    """``CodeLines`` of a comprehension or generator expression: its first line has already begun."""

    __slots__ = ("lines",)

    def __init__(self, lines: CodeLines) -> None:
        super().__init__()
        self.lines = lines

    def __missing__(self, line: int) -> int:
        here = line == self.lines.code.co_firstlineno
        found = self[line] = self.lines[line] | AGAIN if here else self.lines[line]
        return found


class Standing:
    """A frame that runs: its code, the numbers of its lines, and that of the line it is at.

    ``inside``: the same lines if it is a library's frame; ``frame``: its hash then.
    """

    __slots__ = ("code", "frame", "inside", "lines", "place")

    def __init__(
        self, code: CodeType | None, lines: dict[int, int], inside: InsideLines | None = None, frame: int = 0
    ) -> None:
        self.code = code
        self.lines = lines
        self.inside = inside
        self.frame = frame
        self.place = 0


#: Below all frames.
NOWHERE = Standing(None, {})


class Records:
    """One thread's ``time_ns, location`` pairs, one after the other; ``library``: lines of libraries.

    ``frames``: those of the thread whose lines are recorded, the innermost last, which is also ``top``. Only
    ``sys.monitoring`` needs them: its events do not say which frame they are of, and asking Python for it
    takes as long as the rest, and several times as long with an audit hook such as filelock's.
    """

    __slots__ = ("add", "frames", "index", "library", "native", "pairs", "python", "top")

    def __init__(self, native: int, index: int, python: bool) -> None:
        self.python = python  # a thread made by ``threading``
        self.native = native
        self.index = index
        self.pairs = array("q")
        self.add: Callable[[int], None] = self.pairs.append
        self.library = array("q")
        self.frames: list[Standing] = []
        self.top = NOWHERE

    def enter(self, standing: Standing) -> None:
        """A frame begins or goes on."""
        self.frames.append(standing)
        self.top = standing

    def find(self, code: CodeType) -> Standing | None:
        """The innermost frame of ``code``, which becomes the top: those above it have ended unseen."""
        frames = self.frames
        for at in range(len(frames) - 1, -1, -1):
            if frames[at].code is code:
                del frames[at + 1 :]
                self.top = frames[at]
                return self.top
        return None

    def leave(self) -> None:
        """The top's frame ends."""
        del self.frames[-1:]
        self.top = self.frames[-1] if self.frames else NOWHERE

    def keep(self, frames: list[Standing]) -> None:
        """Only these frames are left."""
        self.frames = frames
        self.top = frames[-1] if frames else NOWHERE

    def packed(self, pairs: array[int]) -> bytes:
        """``pairs`` as bytes, with the thread's index in the upper half of each location."""
        if sys.byteorder == "big":  # they are little-endian in the run folder
            pairs = pairs[:]
            pairs.byteswap()
        if self.index == 0:
            return pairs.tobytes()
        packed = bytearray(pairs.tobytes())
        for at, byte in enumerate(self.index.to_bytes(4, "little"), PAIR_BYTES // 2 + THREAD_SHIFT // 8):
            packed[at::PAIR_BYTES] = bytes([byte]) * len(packed[at::PAIR_BYTES])
        return bytes(packed)


def _whole(pairs: array[int]) -> int:
    """Length of the whole pairs. Another thread may have added a time, and its location comes next."""
    return len(pairs) & ~1
