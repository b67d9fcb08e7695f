"""The script's own torch.profiler: torch runs one at a time, so we keep out of its way.

While it records, steps do not count. If it is there all the time it is paused for as long as our
windows take, and goes on after them; its trace then lacks those steps, which a note says.
"""

from .patches import Patches

PATIENCE_STEPS = 30  # steps under the script's profiler before it is paused
PATIENCE_TIMES = 2  # times that it may start inside one of our windows before it is paused there

NOTE = "the script's own torch.profiler was paused while steps were measured: its trace lacks those steps"


class OwnProfiler:
    """``active`` is the script's recording ``torch.autograd.profiler.profile``, if there is one."""

    def __init__(self, disturbed, interrupted):
        self.disturbed = disturbed  # called before it starts inside one of our windows
        self.interrupted = interrupted  # called with what has to happen in between
        self.disturbances = 0
        self.active = None
        self.paused = False
        self.measuring = False  # our windows are running
        self.used_pause = False
        self.patches = Patches()

    @property
    def in_the_way(self):
        return self.active is not None and not self.paused

    def install(self):
        from torch.autograd.profiler import profile

        self.prepare, self.begin = profile._prepare_trace, profile._start_trace
        self.patches.replace(profile, "_prepare_trace", self._make_prepare)
        self.patches.replace(profile, "_start_trace", self._make_start)
        self.patches.replace(profile, "__exit__", self._make_exit)

    def pause(self):
        """Take the recorder away from the script's profiler, until ``resume``."""
        from torch.autograd import _disable_profiler

        _disable_profiler()
        self.paused = self.used_pause = True

    def resume(self):
        if self.paused:
            self.paused = False
            self.prepare(self.active)
            self.begin(self.active)

    def remove(self):
        """Our windows are over: whatever was paused goes on, with the next step or when it is to end.

        Not at once: a range that was opened while we recorded (``optimizer.step()`` is in one, and a step
        ends within it) writes its end into the recording that it began in, which torch has freed by then.
        """
        if not self.paused:
            self.patches.restore()
            return
        from torch.optim.optimizer import register_optimizer_step_pre_hook
        from torch.profiler import profile

        register_optimizer_step_pre_hook(lambda *_: self._go_on())
        self.patches.replace(profile, "step", self._make_step)

    def _go_on(self):
        if self.paused:
            self.patches.restore()
            self.resume()

    def _make_step(self, original):
        def step(theirs):
            original(theirs)
            self._go_on()

        return step

    def _make_prepare(self, original):
        def _prepare_trace(theirs):
            if self.measuring and self.disturbances >= PATIENCE_TIMES:
                self.active, self.paused, self.used_pause = theirs, True, True
                return
            if self.measuring:
                self.disturbances += 1
                self.disturbed()
            self.active = theirs
            original(theirs)

        return _prepare_trace

    def _make_start(self, original):
        def _start_trace(theirs):
            if not self.paused:
                original(theirs)

        return _start_trace

    def _make_exit(self, original):
        def __exit__(theirs, *error):
            def end():
                self.resume()  # it has to have something to stop
                return original(theirs, *error)

            was, self.active = self.active, theirs
            try:
                return self.interrupted(end) if self.paused and was is theirs else original(theirs, *error)
            finally:
                self.active = None

        return __exit__
