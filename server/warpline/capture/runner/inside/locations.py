"""The table of library locations, and their records.

A library line is recorded like a user line, but into an array of its own. To keep this cheap, code that runs
too many lines has only its calls recorded, and all lines of a few of them: the reader finds the lines of the
others by their operators (``trace/inferred.py``). What is called too often even for that is left out, and its
time counts for the caller's line. The limit is found in the capture's first step, which does not count.
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
RESUMED = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator: a call may go on with one
FUNCTION = 0x1  # CO_OPTIMIZED: no module's or class's body, which an import runs
#: A code object with more lines than this in the capture's first step is left out: 10 ms of records.
MOST_OF_CODE = 20_000
#: Largest cost of a step's records, as a share of the step without the profiler. Chosen.
SHARE = 0.08
#: The share of these records that is kept for lines of a few calls. Chosen on `generate` of GPT-2 and
#: BART, not fitted: 400 records a step are 2,000 in a capture, enough for most of the functions.
SAMPLED = 0.2
#: Cost of one record, including the calls and returns of its frames, amid a model's code: 1.7 to 2.4 us in
#: eight readings of a GPT-2 forward pass (Python 3.11 and 3.12); half of that in a loop over one function.
RECORD_NS = 2_000
#: Lines of decorators above a ``def``, at most. Chosen: more than any that were seen.
MOST_DECORATED = 30
#: So many are always recorded: enough for a model of a dozen layers with about 150 lines each.
LEAST = 2_000


class _Ran:
    """What ran of one code object."""

    __slots__ = ("begun", "code", "ended", "first", "lines", "modules", "own_ns")

    def __init__(self, code: CodeType, first: int) -> None:
        self.code = code
        self.first = first  # its uppermost line that ran
        self.begun = 0  # how often that line ran
        self.ended = 0  # how often Python came back from it
        self.lines = 0
        self.own_ns = 0
        self.modules: set[int] = set()

    @property
    def calls(self) -> int:
        """The uppermost line runs once a call, and more often if it is the head of a loop. Python comes back
        once from a call, and more often if the call resumes generators."""
        return max(1, min(self.begun, self.ended))

    @property
    def for_module(self) -> int:
        """How many of the calls are for one module."""
        return max(1, self.calls // len(self.modules))

    @property
    def of_samples(self) -> float:
        """How many lines the calls that ``in_this_call`` chooses would record."""
        return len(self.modules) * self.for_module.bit_length() * self.lines / self.calls


class InsideLines(dict):  # type: ignore[type-arg]
    """Line -> location, of one code object run for one module."""

    __slots__ = (
        "begins",
        "brief",
        "calls",
        "code",
        "file",
        "full",
        "function",
        "left",
        "locations",
        "module",
    )

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
        self.calls = 0  # of those since the recording began, if it is brief
        self.full: InsideLines | None = None  # its lines in calls with all lines recorded

    def __missing__(self, line: int) -> int:
        found = self[line] = self.locations.add(self, self.begins if self.brief else line)
        return found

    def shorten(self) -> None:
        """From now on it is brief."""
        self.brief = True
        self.begins = def_line(self.locations.files[self.code.co_filename], self.code.co_firstlineno)
        self.clear()

    def in_this_call(self) -> InsideLines:
        """Returns the lines to record of a call that begins now.

        Of brief code the 1st, 2nd, 4th, 8th ... call of about one step has all of its lines recorded: a few
        calls, from all parts of the step.
        """
        most = self.locations.sampled.get(id(self.code))
        if most is None:
            return self
        self.calls += 1
        if self.calls & (self.calls - 1) or self.calls > most:
            return self
        if self.full is None:
            self.full = InsideLines(self.locations, self.code, self.module)
            self.full.brief = False
        return self.full


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
        #: id of such code with all lines recorded in a few calls -> the number of the last one
        self.sampled: dict[int, int] = {}
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

    def begin(self) -> None:
        """Starts a recording: calls are counted from here."""
        for lines in self.lines.values():
            lines.calls = 0

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

    def choose(self, step_ns: float, steps: int = 1) -> list[CodeType]:
        """Keep what ran until now and is cheap enough to record: first the calls of all code, which tell the
        module, then lines of a few calls, of code with the most time for each record first, then all lines,
        of code with few of them first. ``steps``: how many are captured, at least; the few calls are in the
        first of them. Returns the code whose lines are left out."""
        ran = self._ran()
        room = max(LEAST, SHARE * step_ns / RECORD_NS)
        of_calls = {name: 2 * each.calls for name, each in ran.items() if self.kinds.get(name) == LIBRARY}
        kept = room * SAMPLED
        room -= kept
        for name in sorted(of_calls, key=lambda name: of_calls[name]):
            if of_calls[name] > room:
                break
            room -= of_calls[name]
            self.brief.add(name)
        short = {name: each for name, each in ran.items() if name in self.brief}
        paid = {name: float(of_calls[name]) for name in short}
        room = (room + kept) * steps
        for name, each in sorted(short.items(), key=lambda item: item[1].of_samples / (1 + item[1].own_ns)):
            if each.of_samples <= room and not each.code.co_flags & RESUMED:
                room -= each.of_samples
                paid[name] += each.of_samples / steps
                self.sampled[name] = each.for_module
        room /= steps
        in_full = {name: each.lines - paid.get(name, 0) for name, each in ran.items()}
        rest = []
        for name in sorted(in_full, key=lambda name: in_full[name]):
            if in_full[name] <= room:
                room -= in_full[name]
                self.brief.discard(name)
                self.sampled.pop(name, None)
                continue
            rest.append(name)
            if name not in self.brief:
                self.leave_out(ran[name].code)
        for lines in self.lines.values():
            lines.left = 1 << 60 if id(lines.code) in ran else MOST_OF_CODE
            if id(lines.code) in self.brief:
                lines.shorten()
        return [ran[name].code for name in rest]

    def _ran(self) -> dict[int, _Ran]:
        """What ran until now, by the id of the code."""
        counts: Counter[int] = Counter()
        own_ns: Counter[int] = Counter()
        ended: Counter[int] = Counter()
        for records in self.user.all_records:
            when = records.library[0::2]
            places = records.library[1::2]
            counts.update(place & ~AGAIN for place in places)
            for begin, end, place, after in zip(when, when[1:], places, places[1:]):
                own_ns[place & ~AGAIN] += max(0, end - begin - RECORD_NS)
                if after >= AGAIN:
                    ended[place & ~AGAIN] += 1
        ran: dict[int, _Ran] = {}
        for place, times in counts.items():
            code = self.owners[place]
            if code is not None:
                _, line, _, module = self.table[place]
                found = ran.setdefault(id(code), _Ran(code, line))
                found.lines += times
                found.own_ns += own_ns[place]
                found.ended += ended[place]
                found.modules.add(module)
                found.begun = found.begun * (line >= found.first) + times * (line <= found.first)
                found.first = min(found.first, line)
        return ran

    def as_dict(self) -> dict[str, Any]:
        """The ``LibraryLocations`` of the run folder."""
        return {
            "files": list(self.numbered_files),
            "functions": [name for _, _, name in self.functions],
            "modules": list(self.modules.paths),
            "locations": self.table,
            "texts": [self._text(file, line) for file, line, _, _ in self.table],
            "at_def": sorted(
                place for lines in list(self.lines.values()) if lines.brief for place in lines.values()
            ),
            "left_out": self._functions(self.left_out),
        }

    def _functions(self, codes: set[int]) -> list[int]:
        """The functions of these codes, by index."""
        return sorted({lines.function for lines in list(self.lines.values()) if id(lines.code) in codes})

    def _text(self, file: int, line: int) -> str:
        path = list(self.numbered_files)[file] if file >= 0 else ""
        return linecache.getline(path, line).strip()[:LONGEST_TEXT] if path else ""
