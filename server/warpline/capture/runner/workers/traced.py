"""A trace function that times the lines of one batch in a loader's worker.

Recording slows plain Python many times over. So after ``ENOUGH_NS`` no more samples of the batch are
recorded, and the recorded ones stand for all.
"""

from __future__ import annotations

import contextlib
import sys
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any, Iterator, Tuple

from ..lines.userfiles import UserFiles

#: Time after which no further sample of a batch is recorded, and after which the batch is given up.
ENOUGH_NS, GIVEN_UP_NS = 1_000_000_000, 5_000_000_000
#: By what these times are divided where the batch is not to be late.
BRIEF = 10
#: Events by which the cost of one is measured.
EVENTS = 2000
#: Before Python 3.12 these are functions with an event per iteration. Their time counts for their line.
WITHIN_A_LINE = ("<listcomp>", "<setcomp>", "<dictcomp>")

Location = Tuple[str, int, str]  # file, line, function


class Lines:
    """A context: the wall time of each line of the user's in this thread, events of this trace counted.

    ``samples``: how many are made inside, 0 if that is not known. Then only so many of them are recorded as
    take ``ENOUGH_NS``; ``without_first``: the first one is not. ``brief``: far less, so that the batch is in
    time.
    """

    def __init__(
        self, user_files: UserFiles, samples: int = 0, without_first: bool = False, brief: bool = False
    ) -> None:
        self.user_files = user_files
        self.brief = brief
        shorter = BRIEF if brief else 1
        self.enough_ns, self.given_up_ns = ENOUGH_NS // shorter, GIVEN_UP_NS // shorter
        self.samples = samples
        self.skipping = without_first and samples > 1
        #: (code, line) -> [ns, events charged to it, times begun]
        self.spent: dict[tuple[Any, int], list[float]] = {}
        self.stack: list[list[float] | None] = []  # None: outside the user's files
        self.charged: list[float] | None = None
        self.events = 0.0
        self.top: CodeType | None = None  # what torch calls for a sample
        self.begun = 0  # samples with recorded lines
        self.skipped = self.collating = self.paused = self.failed = False
        self.total_ns = 0  # of the whole batch; of a part not recorded, what the rest stands for

    def __enter__(self) -> Lines:
        self.began = self.last = perf_counter_ns()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
        self._end_part(perf_counter_ns())

    @contextlib.contextmanager
    def knowing_collate(self, fetcher: Any) -> Iterator[None]:
        """All samples are there once torch's ``fetcher`` calls its collate function."""
        original = fetcher.collate_fn

        def collate(samples: Any) -> Any:
            self._end_part(perf_counter_ns())
            self.collating, self.skipping = True, False
            self.began = self.last = perf_counter_ns()
            if self.paused and not self.failed:
                self.paused = False
                sys.settrace(self._call)
            return original(samples)

        fetcher.collate_fn = collate
        try:
            yield
        finally:
            fetcher.collate_fn = original

    def _end_part(self, now: int) -> None:
        """What was recorded of the samples stands for all of them."""
        times = 1.0
        if self.samples and self.begun and not self.collating:
            recorded = self.begun if self.paused else self.samples - self.skipped
            times = self.samples / max(1, recorded)
        self.total_ns += round(times * ((self.last if self.paused else now) - self.began))
        if times == 1.0:
            return
        self.events *= times
        for spent in self.spent.values():
            spent[:] = [figure * times for figure in spent]

    def _charge(self) -> None:
        now = perf_counter_ns()
        self.events += 1
        if self.charged is not None:
            self.charged[0] += now - self.last
            self.charged[1] += 1
        self.last = now
        if now - self.began > self.given_up_ns:
            self.failed = True
            sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if self.user_files[code.co_filename] is None or code.co_name in WITHIN_A_LINE:
            return None
        if self.skipping:
            if self.top is not code:
                self.top = self.top or code
                return None
            self.skipping, self.skipped = False, True
            self.began = self.last = perf_counter_ns()
        self._charge()
        if not self.stack and not self.collating and self._sample_begins(code):
            return None
        self.stack.append(self.charged)
        self.charged = self._row(frame)
        return self._line

    def _sample_begins(self, code: CodeType) -> bool:
        """Whether it is not recorded, since there are enough."""
        self.top = self.top or code
        if code is not self.top:
            return False
        if 0 < self.begun < self.samples and self.last - self.began > self.enough_ns:
            self.paused = True
            sys.settrace(None)
            return True
        self.begun += 1
        return False

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self._charge()
        if event == "line":
            self.charged = self._row(frame)
            self.charged[2] += 1
        elif event == "return":
            self.charged = self.stack.pop() if self.stack else None
        return self._line

    def _row(self, frame: FrameType) -> list[float]:
        return self.spent.setdefault((frame.f_code, frame.f_lineno), [0.0, 0, 0])


def event_ns() -> float:
    """What one event costs this process now: a loop of ``EVENTS`` lines, traced and not."""
    names: dict[str, Any] = {}
    exec(
        compile("def loop(n):\n for i in range(n):\n  x = i\n", "<warpline: cost of an event>", "exec"), names
    )
    loop = names["loop"]
    began = perf_counter_ns()
    loop(EVENTS // 2)
    plain = perf_counter_ns() - began
    lines = Lines(Everything())  # type: ignore[arg-type]
    with lines:
        loop(EVENTS // 2)
    return max(0.0, (lines.total_ns - plain) / max(1, lines.events))


class Everything(dict):  # type: ignore[type-arg]
    """Takes the place of UserFiles: every file counts as the user's."""

    def __missing__(self, filename: str) -> str:
        return filename
