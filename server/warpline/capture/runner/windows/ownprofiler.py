"""The script's own torch.profiler. torch runs one profiler at a time, so ours must give way.

While the script's profiler records, steps do not count. If it records all the time, it is paused during our
windows and resumed after them. If it ends inside one of them, it keeps what it recorded before the pause. Our
own recording is not stopped for that: a range that is open then would write its end to the recording in which
it began, after torch has freed it. A note says what the script's trace lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..patches import Patches
from .nothing import NothingRecorded

if TYPE_CHECKING:
    from ..patches import Function

PATIENCE_STEPS = 30  # steps under the script's profiler before it is paused
PATIENCE_TIMES = 2  # times that it may start inside one of our windows before it is paused there
#: It is paused at the earliest so many seconds after it first got in the way. A shorter script keeps its
#: traces complete and is measured in a second run.
PATIENCE_S = 5.0
#: It is paused earlier if it has recorded so many steps: storing more would take long.
MOST_STEPS = 1000

NOTE = (
    "the script's own torch.profiler was paused while steps were measured: its trace lacks those steps, and "
    "also the steps before them if it continued afterwards"
)


class OwnProfiler:
    """``active`` is the script's recording ``torch.autograd.profiler.profile``, if there is one."""

    def __init__(self, disturbed: Callable[[], None], excused: Function) -> None:
        self.disturbed = disturbed  # called before it starts inside one of our windows
        self.excused = excused  # called with work whose time must not count as the step's
        self.disturbances = 0
        self.active = None
        self.started = False  # it records, or would if it were not paused; before that it prepares
        self.paused = False
        self.kept = None  # what it had recorded when it was paused
        self.over = False  # our windows have ended
        self.measuring = False  # our windows are running
        self.used_pause = False
        self.noticed_s: float | None = None  # when it first got in the way
        self.patches = Patches()

    @property
    def in_the_way(self) -> bool:
        """Whether the script's own profiler runs, and was not paused."""
        return self.active is not None and not self.paused

    @property
    def note(self) -> str:
        """A note about it for the report; "" if there is none."""
        return NOTE if self.used_pause else ""

    def waited_for(self) -> bool:
        """Whether it has been in the way for so long that this is not a short script (``PATIENCE_S``)."""
        now = monotonic()
        self.noticed_s = self.noticed_s or now
        return now - self.noticed_s > PATIENCE_S

    def install(self) -> None:
        """Watch when the script's profilers start and end."""
        from torch.autograd.profiler import profile

        self.prepare, self.begin = profile._prepare_trace, profile._start_trace
        self.patches.replace(profile, "_prepare_trace", self._make_prepare)
        self.patches.replace(profile, "_start_trace", self._make_start)
        self.patches.replace(profile, "__exit__", self._make_exit)

    def pause(self) -> None:
        """Take the recorder away from the script's profiler, and from what it starts, until ``resume``."""
        from torch.autograd import _disable_profiler

        self.kept = _disable_profiler() if self.started else None
        self.paused = self.used_pause = True

    def resume(self) -> None:
        """Start the paused profiler again, with an empty recording."""
        if self.paused:
            self.paused, self.kept = False, None
            self.prepare(self.active)
            if self.started:
                self.begin(self.active)

    def remove(self) -> None:
        """Our windows are over: resume what was paused, but only with the next step.

        A range that was opened while we recorded writes its end to our recording, which torch would have
        freed by then. (A step ends within such a range: that of ``optimizer.step()``.)
        """
        self.over = True
        if not self.paused:
            self.patches.restore()
            return
        from torch.optim.optimizer import register_optimizer_step_pre_hook
        from torch.profiler import profile

        register_optimizer_step_pre_hook(lambda *_: self._go_on())
        self.patches.replace(profile, "step", self._make_step)

    def _go_on(self) -> None:
        if self.paused:
            self.patches.restore()
            self.resume()

    def _make_step(self, original: Function) -> Function:
        def step(theirs: Any) -> None:
            original(theirs)
            self._go_on()

        return step

    def _make_prepare(self, original: Function) -> Function:
        def _prepare_trace(theirs: Any) -> None:
            self.started = False
            impatient = self.measuring and self.waited_for() and self.disturbances >= PATIENCE_TIMES
            if not self.over and (impatient or self.used_pause):
                self.active, self.paused, self.used_pause = theirs, True, True
                return
            if self.measuring:
                self.disturbances += 1
                self.disturbed()
            self.active = theirs
            original(theirs)

        return _prepare_trace

    def _make_start(self, original: Function) -> Function:
        def _start_trace(theirs: Any) -> None:
            self.started = True
            if not self.paused:
                original(theirs)

        return _start_trace

    def _make_exit(self, original: Function) -> Function:
        def __exit__(theirs: Any, *error: Any) -> Any:
            if self.paused and self.active is theirs:
                # What was recorded is going to be read or written now, in this step.
                return self.excused(lambda: self._end_paused(original, theirs, error), bool(self.kept))
            try:
                return original(theirs, *error)
            finally:
                self.active = None

        return __exit__

    def _end_paused(self, original: Function, theirs: Any, error: tuple[Any, ...]) -> Any:
        from torch.autograd import profiler

        result = self.kept or NothingRecorded()
        recorders = profiler._disable_profiler
        profiler._disable_profiler = lambda: result
        try:
            return original(theirs, *error)
        finally:
            profiler._disable_profiler = recorders
            self.active, self.paused, self.kept = None, False, None
