"""The table of library locations, and their records.

A library line is recorded like a user line, but into an array of its own. To keep this cheap, code that runs
too many lines is left out, and its time counts for the caller's line. The limit is found in the capture's
first step, which does not count.
"""

from __future__ import annotations

import linecache
from collections import Counter
from time import time_ns
from types import CodeType, FrameType
from typing import Any

from ....wire.inside import LONGEST_TEXT
from ....wire.records import AGAIN
from ..lines.locations import WITHIN, Locations, Records
from .files import LibraryFiles
from .modules import ModulePaths

NEITHER, USER, LIBRARY = 0, 1, 2
FUNCTION = 0x1  # CO_OPTIMIZED: no module's or class's body, which an import runs
#: A code object with more lines than this in the capture's first step is left out: 10 ms of records.
MOST_OF_CODE = 20_000
#: Largest cost of a step's records, as a share of the step without the profiler. Chosen.
SHARE = 0.08
#: Cost of one record, including the calls and returns of its frames, amid a model's code: 1.7 to 2.4 us in
#: eight readings of a GPT-2 forward pass (Python 3.11 and 3.12); half of that in a loop over one function.
RECORD_NS = 2_000
#: Lines of decorators above a ``def``, at most. Chosen: more than any that were seen.
MOST_DECORATED = 30
#: So many are always recorded: enough for a model of a dozen layers with about 150 lines each.
LEAST = 2_000


class InsideLines(dict):  # type: ignore[type-arg]
    """Line -> location, of one code object run for one module."""

    __slots__ = ("begins", "brief", "code", "file", "function", "left", "locations", "module")

    def __init__(self, locations: LibraryLines, code: CodeType, module: int) -> None:
        super().__init__()
        path = locations.files[code.co_filename]
        self.locations = locations
        self.code = code
        self.module = module
        self.file = locations.numbered_files.setdefault(path, len(locations.numbered_files))
        key = (path, code.co_firstlineno, locations.names.of(code, path))
        self.function = locations.functions.setdefault(key, len(locations.functions))
        self.left = MOST_OF_CODE
        #: Its lines are too many: only its calls and returns are recorded, at the line of its ``def``.
        self.brief = id(code) in locations.brief
        self.begins = def_line(path, code.co_firstlineno) if self.brief else 0

    def __missing__(self, line: int) -> int:
        found = self[line] = self.locations.add(self, self.begins if self.brief else line)
        return found

    def shorten(self) -> None:
        """From now on it is brief."""
        self.brief = True
        self.begins = def_line(self.locations.files[self.code.co_filename], self.code.co_firstlineno)
        self.clear()


def def_line(path: str, first: int) -> int:
    """The line of the ``def`` of code that begins at ``first``, which may be a decorator's."""
    for line in range(first, first + MOST_DECORATED):
        if linecache.getline(path, line).lstrip().startswith(("def ", "async def ")):
            return line
    return first


class LibraryLines:
    """Which frames are a library's, and ``InsideLines`` for them."""

    def __init__(self, torch: Any, user: Locations) -> None:
        self.user = user
        self.names = user.names
        self.files = LibraryFiles(user.user_files, torch.__file__)
        self.modules = ModulePaths(torch.nn.Module)
        self.numbered_files: dict[str, int] = {}
        self.functions: dict[tuple[str, int, str], int] = {}
        self.table: list[tuple[int, int, int, int]] = [(-1, 0, -1, -1)]
        self.owners: list[CodeType | None] = [None]  # beside ``table``
        self.lines: dict[tuple[int, int], InsideLines] = {}  # (id(code), module) -> its lines
        self.kinds: dict[int, int] = {}  # id(code) -> NEITHER, USER, LIBRARY
        self.brief: set[int] = set()  # ids of code that is known by its calls alone
        self.left_out: set[int] = set()  # ids of code that ran, and is not recorded any more
        self.kept: list[CodeType] = []  # kept alive, so that their ids are not reused

    def kind(self, code: CodeType) -> int:
        """USER, LIBRARY or NEITHER. Library code that is not recorded counts as NEITHER."""
        known = self.kinds.get(id(code))
        if known is not None:
            return known
        found = NEITHER
        if self.user.user_files[code.co_filename] is not None:
            found = USER
        elif self.files[code.co_filename] is not None:
            found = LIBRARY if code.co_flags & FUNCTION and code.co_name not in WITHIN else NEITHER
        self.kept.append(code)
        self.kinds[id(code)] = found
        return found

    def is_recorded(self, code: CodeType) -> bool:
        """Whether lines of ``code`` are recorded as a library's."""
        return self.kind(code) == LIBRARY

    def lines_of(self, frame: FrameType) -> InsideLines:
        """The recorded lines of a frame's code."""
        return self.lines_for(frame.f_code, self.modules.of(frame))

    def lines_for(self, code: CodeType, module: int) -> InsideLines:
        """The recorded lines of ``code`` where it runs for ``module``."""
        key = (id(code), module)
        found = self.lines.get(key)
        if found is None:
            found = self.lines.setdefault(key, InsideLines(self, code, module))
        return found

    def leave_out(self, code: CodeType) -> None:
        self.kept.append(code)
        self.kinds[id(code)] = NEITHER
        self.left_out.add(id(code))

    def add(self, lines: InsideLines, line: int | None) -> int:
        """The number of a library's line in the table."""
        with self.user.lock:
            self.table.append((lines.file, line or 0, lines.function, lines.module))
            self.owners.append(lines.code)
            return len(self.table) - 1

    def came_back(self, frame: FrameType | None, records: Records, even_to_user: bool = False) -> None:
        """Python goes on in ``frame``, or in what called it: note the library's line there.

        ``even_to_user``: note as well that it is none, because a user's line goes on.
        """
        kinds = self.kinds
        while frame is not None:
            kind = kinds.get(id(frame.f_code))
            if kind is None:
                kind = self.kind(frame.f_code)
            if kind == USER:
                break
            if kind == LIBRARY:
                traced = getattr(frame.f_trace, "inside", None)
                lines = traced if traced is not None else self.lines_of(frame)
                records.library.append(time_ns())
                records.library.append(AGAIN | lines[frame.f_lineno])
                return
            frame = frame.f_back
        if even_to_user:
            records.library.append(time_ns())
            records.library.append(AGAIN)

    def choose(self, step_ns: float) -> list[CodeType]:
        """Keep what ran until now and is cheap enough to record: first the calls of all code, which tell the
        module, then lines, of code with few of them first. Returns the code whose lines are left out."""
        counts: Counter[int] = Counter()
        for records in self.user.all_records:
            counts.update(place & ~AGAIN for place in records.library[1::2])
        of_code: Counter[int] = Counter()
        codes: dict[int, CodeType] = {}
        begins: dict[int, tuple[int, int]] = {}  # id(code) -> its uppermost line that ran, and how often
        for place, times in counts.items():
            code = self.owners[place]
            if code is not None:
                codes[id(code)] = code
                of_code[id(code)] += times
                line = self.table[place][1]
                first, calls = begins.get(id(code), (line, 0))
                begins[id(code)] = min(first, line), calls * (line >= first) + times * (line <= first)
        room = max(LEAST, SHARE * step_ns / RECORD_NS)
        # A call and a return: the uppermost line runs once a call, unless it is the head of a loop.
        of_calls = {name: 2 * begins[name][1] for name in of_code if self.kinds.get(name) == LIBRARY}
        for name in sorted(of_calls, key=lambda name: of_calls[name]):
            if of_calls[name] > room:
                break
            room -= of_calls[name]
            self.brief.add(name)
        in_full = {name: of_code[name] - (of_calls[name] if name in self.brief else 0) for name in of_code}
        rest = []
        for name in sorted(in_full, key=lambda name: in_full[name]):
            if in_full[name] <= room:
                room -= in_full[name]
                self.brief.discard(name)
                continue
            rest.append(name)
            if name not in self.brief:
                self.leave_out(codes[name])
        for lines in self.lines.values():
            lines.left = 1 << 60 if id(lines.code) in of_code else MOST_OF_CODE
            if id(lines.code) in self.brief:
                lines.shorten()
        return [codes[name] for name in rest]

    def as_dict(self) -> dict[str, Any]:
        """The ``LibraryLocations`` of the run folder."""
        return {
            "files": list(self.numbered_files),
            "functions": [name for _, _, name in self.functions],
            "modules": list(self.modules.paths),
            "locations": self.table,
            "texts": [self._text(file, line) for file, line, _, _ in self.table],
            "by_calls": self._functions(self.brief),
            "left_out": self._functions(self.left_out),
        }

    def _functions(self, codes: set[int]) -> list[int]:
        """The functions of these codes, by index."""
        return sorted({lines.function for lines in list(self.lines.values()) if id(lines.code) in codes})

    def _text(self, file: int, line: int) -> str:
        path = list(self.numbered_files)[file] if file >= 0 else ""
        return linecache.getline(path, line).strip()[:LONGEST_TEXT] if path else ""
