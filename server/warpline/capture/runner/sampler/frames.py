"""Samples this process with Warpline's own sampler (``snapshots``), in a separate process."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from opcode import opmap
from types import CodeType
from typing import TYPE_CHECKING, Any, Tuple

from ....wire.samples import MOST_NS, RATE
from . import layout, snapshots
from .child import START_S, Child

if TYPE_CHECKING:
    from ..lines.userfiles import UserFiles

Place = Tuple[str, int]  # file and line
#: It ends by itself after so many seconds, in case it does not notice that this process has ended.
LONGEST_S = 5 * MOST_NS / 1e9
RESUME = opmap.get("RESUME", -1)
#: Largest share of samples without a valid chain of frames. With more, the layout is wrong.
MOST_TORN = 0.05
#: A step that takes ``LONG`` times the median, and ``LARGE`` of the sampled time more, did something else,
#: such as a collection of all garbage. If fewer than ``FEW`` did, how often that happens is chance: one
#: collection in two seconds or none moved 6 % of the step from line to line. There must be so many steps that
#: ``FEW`` of them are less than ``RARE``.
LONG, LARGE, FEW, RARE = 2, 0.02, 4, 0.1
WORTH_A_NOTE = 0.05  # share of the sampled time
NOTE = (
    "%d of %d sampled steps took more than %d times as long as most (%.0f ms together; Python collected all "
    "garbage, or the machine was busy): too few to say how often that happens, so they count for no line"
)


class Frames(Child):
    """Raises OSError if it cannot start, has no permission, or does not know this interpreter's frames."""

    def __init__(self, rate: float = RATE, all_threads: bool = False) -> None:
        """``rate``: samples per second. ``all_threads``: those that make the steps (``made_here``) are
        sampled, and the process's first one while none of them is at a line of the user's."""
        self.others: list[tuple[int, int]] = []  # begin and end of steps that are not meant, in ns
        if "python" not in os.path.basename(sys.executable or "").lower():
            raise OSError("%s is no Python" % sys.executable)  # a program that has one inside
        self.all_threads = all_threads
        self.makers: set[int] = set()  # addresses of their states
        self.layout = layout.of_all_threads() if all_threads else layout.of_this_thread()
        super().__init__([sys.executable, "-I", "-S", snapshots.__file__])
        asked = {
            "process": os.getpid(),
            "thread": os.getpid() if all_threads else self.thread,  # others may end
            "layout": asdict(self.layout),
            "rate": rate,
            "longest_s": LONGEST_S,
        }
        self.begin(json.dumps(asked).encode() + b"\n", snapshots.READY, START_S)

    def go(self) -> None:
        """Tell the sampler to begin."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended, or was stopped: ``found`` will say so
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()

    def made_here(self) -> None:
        """The calling thread made a step."""
        if self.all_threads:
            self.makers.add(layout.state_of_this_thread())

    def found(self, user_files: UserFiles, codes: Sequence[CodeType]) -> dict[str, Any]:
        """``Samples``, as a dict: the innermost line of the user's in each stack, without ``rare`` steps
        and ``others``. ``codes``: those of the user's that count. Raises OSError where too little could be
        read."""
        try:
            seen = json.loads(self.output.splitlines()[-1])
            frames, stacks, times, torn = (seen[name] for name in ("frames", "stacks", "times", "torn"))
        except (ValueError, KeyError, IndexError):
            raise OSError("it wrote no samples") from None
        long = rare(self.steps, self.others)
        self.note = _note(long, self.steps)
        left_out = [(begin // 1000, end // 1000) for begin, end in (*long, *self.others)]
        kept = [
            [moment for moment in moments if not any(begin <= moment < end for begin, end in left_out)]
            for moments in times
        ]
        total = sum(map(len, kept))
        if torn > MOST_TORN * (total + torn):
            raise OSError("%d of %d samples had no frames" % (torn, total + torn))
        places = self._places(frames, user_files, codes)
        at = [next((places[frame] for frame in stack if frame in places), None) for stack in stacks]
        lines: Counter[tuple[str, int]] = Counter()
        if self.all_threads:
            lines.update(_of_makers(seen["threads"], kept, at, self.makers))
        else:
            for place, moments in zip(at, kept):
                if place is not None:
                    lines[place] += len(moments)
        return {"total": total, "lines": [(file, line, count) for (file, line), count in lines.items()]}

    def _places(
        self, frames: Sequence[Sequence[int]], user_files: UserFiles, codes: Sequence[CodeType]
    ) -> dict[int, tuple[str, int]]:
        """File and line of each frame of ``codes``, by its number."""
        known = {id(code): code for code in codes}
        tables: dict[int, LineTable] = {}
        found = {}
        for number, (address, instruction) in enumerate(frames):
            code = known.get(address)
            path = user_files[code.co_filename] if code is not None else None
            if code is None or path is None:
                continue
            table = tables.setdefault(address, LineTable(code))
            line = table.at(instruction - self.layout.first)
            if line is not None:
                found[number] = (path, line)
        return found


def _of_makers(
    threads: Sequence[Sequence[tuple[int, int]]],
    times: Sequence[Sequence[int]],
    at: Sequence[Place | None],
    makers: Collection[int],
) -> Iterator[Place]:
    """The place of each sample that has one. ``threads``: of each moment in ``times``, the process's first
    thread first; ``at``: the place of each stack. Of several threads that make steps, that counts which came
    to its place last, as in the account (``trace/drivers.py``)."""
    moments = sorted((moment, number) for number, each in enumerate(times) for moment in each)
    since: dict[int, tuple[Place | None, int]] = {}
    for moment, number in moments:
        (_, first), *others = threads[number]
        latest, found = -1, at[first]
        for thread, stack in others:
            place = at[stack]
            if since.get(thread, (None, 0))[0] != place:
                since[thread] = place, moment
            if place is not None and thread in makers and since[thread][1] > latest:
                latest, found = since[thread][1], place
        if found is not None:
            yield found


def rare(steps: Sequence[int], others: Collection[tuple[int, int]] = ()) -> list[tuple[int, int]]:
    """Begin and end of the long steps, if they are rare. ``steps``: all boundaries, also of ``others``."""
    pairs = zip(steps[:-1], steps[1:])  # noqa: RUF007 - Python 3.9 has no pairwise
    spans = [pair for pair in pairs if pair not in others]
    if RARE * len(spans) < FEW:
        return []
    usual = sorted(end - begin for begin, end in spans)[len(spans) // 2]
    least = max(LONG * usual, usual + LARGE * (steps[-1] - steps[0]))
    long = [(begin, end) for begin, end in spans if end - begin > least]
    return long if len(long) < FEW else []


def _note(left_out: Sequence[tuple[int, int]], steps: Sequence[int]) -> str:
    """The note about the steps ``left_out`` (begin and end in ns); empty where they are short."""
    spent_ns = sum(end - begin for begin, end in left_out)
    if not left_out or spent_ns < WORTH_A_NOTE * (steps[-1] - steps[0]):
        return ""
    return NOTE % (len(left_out), len(steps) - 1, LONG, spent_ns / 1e6)


class LineTable:
    """The line of each instruction of a code object.

    Time before a function's first line counts for that line. From Python 3.12 on garbage is collected there,
    at the ``def``, which is not a line that runs.
    """

    def __init__(self, code: CodeType) -> None:
        rows = list(code.co_lines()) if hasattr(code, "co_lines") else []
        self.begins = [begin for begin, _, _ in rows]
        self.lines = [line for _, _, line in rows]
        self.first = _behind_resume(code)

    def at(self, instruction: int) -> int | None:
        """``instruction``: its offset in bytes; negative in a frame that is just starting. An instruction
        without a line has that of the last one with a line."""
        for at in range(bisect_right(self.begins, max(instruction, self.first)) - 1, -1, -1):
            if self.lines[at] is not None:
                return self.lines[at]
        return None


def _behind_resume(code: CodeType) -> int:
    """Where the instructions of the first line begin; 0 where there is no such instruction (3.10)."""
    instructions = code.co_code
    for at in range(0, len(instructions), 2):
        if instructions[at] == RESUME:
            return at + 2
    return 0
