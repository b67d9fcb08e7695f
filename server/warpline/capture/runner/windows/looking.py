"""The stage that only watches the script's loops."""

from __future__ import annotations

from time import time_ns

from ....wire.stages import WAITING
from ..device import kinds
from . import lengths
from .stages import Stage

#: The share of the request's timeout after which the choice is made. Chosen, not fitted.
LONGEST_SHARE = 0.5


class Looking(Stage):
    """Lasts until it is clear which loop's iterations are the steps, or to the script's end."""

    at_end = True

    def begin(self) -> None:
        session = self.session
        session.pipe.progress(WAITING, 0, None, "looking for the loop whose iterations are the steps")
        session.loops.start(session.torch, session.synchronize)
        session.loops.on_turn = session.guarded(self._look, None)

    def _look(self) -> None:
        session = self.session
        whole_ns = session.windows.whole_ns[0] if session.windows.whole_ns else 0
        limit_s = session.control.request.timeout_s
        late = limit_s is not None and time_ns() - session.begun > LONGEST_SHARE * limit_s * 1e9
        if late or session.loops.sure(self._window_ns(), whole_ns, lengths.TIMING_MOST_NS):
            session.pipe.send(session.loops.found(self._window_ns(), at_end=False))
            session.leave_off()

    def ended(self) -> None:
        self.session.pipe.send(self.session.loops.found(self._window_ns(), at_end=True))

    def _window_ns(self) -> int:
        has_device = kinds.used(self.session.torch).accelerated
        return lengths.WINDOW_DEVICE_NS if has_device else lengths.WINDOW_NS
