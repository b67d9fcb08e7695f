"""The capture of a script without steps."""

from __future__ import annotations

from time import time_ns

from ....wire.stages import CAPTURING
from .queued import Queued
from .saving import stop
from .stages import Stage


class Whole(Stage):
    """A script without steps: from the import of torch to the script's end."""

    at_end = True

    def begin(self) -> None:
        session = self.session
        session.pipe.progress(CAPTURING, 0, None, "capturing the whole script")
        session.timed = session.windows.whole_ns
        session.make_recorder()
        session.recorder.start(False)
        session.observers.garbage.start()
        self.queued = Queued()
        self.stamps = [time_ns()]

    def ended(self) -> None:
        self.session.guarded(self._finish, None)()

    def _finish(self) -> None:
        self.session.synchronize()
        stop(self.session, self.queued)
        stamps = [*self.stamps, time_ns()]
        self.session.observers.read_device()  # opening the driver's library is no time of the script's
        self.session.finish_capture(stamps)
