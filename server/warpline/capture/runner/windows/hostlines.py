"""Host time by line for one step, without torch's profiler."""

from __future__ import annotations

import math
from collections import defaultdict
from time import time_ns
from typing import TYPE_CHECKING

from ....wire.records import AGAIN
from ..lines import events
from .calibration import line_record_ns

if TYPE_CHECKING:
    from .recorder import Recorder

#: The share of the time between two recorded steps that recording may cost.
COST = 0.02
LEAST_SHARE = 0.002  # lines with a smaller share of the step are left out


class HostLines:
    """Call ``start`` at the start of a step, ``take`` at its end, and ``due`` once per window in between.

    These are host times. With a device, its time appears at the line where the host waits for it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.locations = recorder.locations
        self.recording = False
        self.rest = 0  # windows to skip before the next recorded step
        self.known: dict[tuple[str, int], int] = {}  # place -> number
        self.record_ns = line_record_ns(type(recorder.lines)) or 1000.0  # cost of one line record

    def places(self) -> tuple[tuple[str, int], ...]:
        """File and line of each number in the windows."""
        return tuple(self.known)

    def due(self) -> bool:
        """Whether the next step's lines are to be recorded."""
        self.rest -= 1
        return self.rest < 0

    def start(self) -> None:
        """Record the user's lines of the step that begins."""
        recorder = self.recorder
        self.locations.library = None  # the run is written: lines of libraries are no longer needed
        recorder.lines, note = events.usable(self.locations, recorder.lines)
        recorder.lines.library = None  # type: ignore[union-attr]
        if note:
            self.rest = 1 << 30
            return
        self.locations.clear_records()
        for records in self.locations.all_records:  # writing replaced their lists
            records.add = records.pairs.append
        self.recording = True
        self.began_ns = time_ns()
        recorder.lines.start()

    def stop(self) -> None:
        """Stop recording, if it runs."""
        if self.recording:
            self.recording = False
            self.recorder.lines.stop()

    def take(self, between_ns: float) -> tuple[tuple[int, int], ...]:
        """``(place, ns)``, the most first. ``between_ns``: from one window to the next."""
        ended_ns = time_ns()
        self.stop()
        pairs = self.locations.records().pairs
        times, numbers = pairs[::2].tolist(), pairs[1::2].tolist()
        at: dict[int, float] = defaultdict(float)
        for begin_ns, end_ns, number in zip(times, [*times[1:], ended_ns], numbers):
            at[number & ~AGAIN] += end_ns - begin_ns
        self.locations.clear_records()
        spent = self._by_place(at)
        least_ns = LEAST_SHARE * (ended_ns - self.began_ns)
        found = sorted((-ns, place) for place, ns in spent.items() if ns >= least_ns)
        # Computed from the number of records: on a busy machine the time of a single step says little.
        extra_ns = len(times) * self.record_ns + time_ns() - ended_ns
        self.rest = max(0, math.ceil(extra_ns / (COST * between_ns)) - 1)
        return tuple((self.known.setdefault(place, len(self.known)), round(-ns)) for ns, place in found)

    def _by_place(self, at: dict[int, float]) -> dict[tuple[str, int], float]:
        """Convert time by location to time by ``(file, line)``. A quick loop is recorded only at its start;
        its time is divided among its lines in the same shares as in the capture."""
        shares = {place: loop.shares for loop in self.recorder.loops for place in loop.shares}
        files = list(self.locations.files)
        spent: dict[tuple[str, int], float] = defaultdict(float)
        for number, ns in at.items():
            for other, share in shares.get(number, {number: 1.0}).items():
                file, line, _ = self.locations.table[other]
                if file >= 0:
                    spent[files[file], line] += ns * share
        return spent
