"""The timing window in slices. Between them this process and its children are stopped, and another process
has its turn. So a disturbance that lasts seconds slows both alike."""

from __future__ import annotations

import os
import signal

from ....wire.control import END
from ....wire.stages import RESTING, TIMING
from ..device import kinds
from ..device.stamps import DeviceStamps
from . import results
from .stages import differences
from .timing import Timing


class Slices(Timing):
    """A slice is one step that does not count (the device begins idle, the caches are cold), then
    ``windows.timed`` steps that do.

    With a device, events on it time the slice, from its first boundary to its last. The host's time would
    include filling or emptying the launch queue once per slice.
    """

    def begin(self) -> None:
        session = self.session
        session.steps.quiet()
        session.own_profiler.measuring = True
        self.stamps, self.classes, self.excused = [], [], {}
        self.slices: list[int] = []
        self.watch_epochs()
        self.last = (session.windows.timed or 1) + 1
        self.device = DeviceStamps(device) if (device := kinds.used(session.torch)).accelerated else None
        session.steps.on_step = self._quick_tick()
        session.synchronize()
        self._rest()

    def _more(self) -> int:
        session = self.session
        session.synchronize()
        seen = differences(self.stamps)
        if self.device is not None:
            seen = tuple(self.device.durations_ns() or seen)
            self.device.events.clear()
        self.slices += [duration - self.excused.get(at, 0) for at, duration in enumerate(seen)]
        session.boundaries += len(self.stamps)
        self.stamps.clear()
        self.classes.clear()
        self.excused.clear()
        self._rest()
        return 0

    def _rest(self) -> None:
        """Stop until the server asks for another slice or for the end. It is told right before. The whole
        process group stops: running loader workers would fill their queue meanwhile."""
        session = self.session
        if self.slices:  # kept in case this process is ended while it is stopped
            results.write_timing(session, tuple(self.slices))
        session.pipe.progress(RESTING, len(self.slices), None, "waiting for its turn")
        os.kill(0, signal.SIGSTOP)
        if session.next_turn() == END:
            session.timed = tuple(self.slices)
            session.finish_timing()
        session.pipe.progress(TIMING, len(self.slices), None, "timing")

    def number(self) -> int:
        """The number of the step that runs; -1 before the first."""
        return len(self.slices) + len(self.stamps) - 1 if self.stamps else -1

    def excuse(self, duration_ns: int, long: bool) -> None:
        if self.stamps:
            super().excuse(duration_ns, long)
