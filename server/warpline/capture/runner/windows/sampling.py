"""A window without recording, in which another process samples the running line many times a second.

It comes before the capture, because the profiler changes what the script's memory costs. glibc returns freed
tensors to the system if they are at the end of its heap. A step that requests this memory again spends 10 %
and more of its time in page faults. After a capture glibc keeps freed memory, and these page faults no longer
occur.
"""

from __future__ import annotations

import os
import threading
from time import monotonic_ns
from typing import TYPE_CHECKING

from ....wire.samples import LEAST_NS, MOST_NS, RATE
from ....wire.stages import CAPTURING
from ..sampler.child import START_S
from ..sampler.frames import Frames
from ..sampler.pyspy import PySpy
from .stages import Stage

if TYPE_CHECKING:
    from ..session import Session

#: Number of samples in a short window, but at most ``FASTEST`` per second: one sample takes about 30 us. With
#: 4,000 the standard deviation of a line of 30 % of the step is 0.7 % of the step.
SAMPLES, FASTEST = 4000, 5000
LONGEST = 3.0  # times the window; after that the script is taken to do something else than its steps
AFTER = 0.2  # the largest share of the sampled time that may be after the end of the last step
OTHERS = 0.05  # the largest share of what steps of another class did in addition


class Sampling(Stage):
    """Samples whole steps until the window is full, or until no step has ended for too long."""

    def begin(self) -> None:
        session = self.session
        session.pipe.progress(CAPTURING, 0, None, "sampling the lines")
        session.samples.clear()
        step_ns = self.step_ns = sum(session.timed) / max(1, len(session.timed))
        self.others_ns = 0.0  # time of steps of other classes beyond a usual step, which is in the samples
        self.left_out_ns = 0  # time of those whose samples are left out
        session.observers.signals.take()
        self.wanted = session.windows.sampled
        steps = self.wanted or max(1, round(LEAST_NS / max(1, step_ns)))
        window_ns = min(MOST_NS, (steps - 0.5) * step_ns)
        self.window_ns = window_ns
        self.sampler: Frames | PySpy | None
        try:
            self.sampler = self._sampler(min(FASTEST, max(RATE, 1e9 * SAMPLES / max(1, window_ns))))
        except OSError as error:
            session.samples.why = str(error)
            if session.control.world == 1:
                self._go_on()
                return
            self.sampler = None  # let the same steps pass: other ranks may sample them
        self.steps = 0
        self.over_ns = 0  # when it stopped
        self.waits = self.together = session.control.world > 1  # other ranks start their samplers too
        self._count()
        self.ending = threading.Lock()  # acquired by the first call of ``_stop``, never released
        self._limit()

    def _limit(self) -> None:
        """Set what ends the window where no step does. Nothing here: the next step notices. A timer's thread
        would slow down a script without threads for good, because glibc's malloc then locks: a line of
        regular expressions took 18.3 us instead of 15.6."""

    def _count(self) -> None:
        self.began_ns = self.last_ns = monotonic_ns()
        self.until_ns = self.began_ns + self.window_ns
        self.late_ns = self.began_ns + LONGEST * self.window_ns + START_S * 1e9
        if not self.waits and self.sampler is not None:
            self.sampler.steps = [self.began_ns]
            self.sampler.go()
            self.session.observers.workers.sample(True)

    def _sampler(self, rate: float) -> Frames | PySpy:
        """Raises OSError."""
        session = self.session
        if session.steps.moves:  # each sample has all threads
            return Frames(min(rate, RATE), all_threads=True)
        try:
            return Frames(rate)
        except OSError:
            os.makedirs(session.control.folder, exist_ok=True)
            path = os.path.join(session.control.folder, "samples.raw")
            return PySpy(session.windows.sampler, path)

    def tick(self) -> None:
        session, before_ns = self.session, self.last_ns
        session.boundaries += 1
        if self.waits:
            self.waits = False
            if not self.over_ns:
                self._count()
            return
        self.steps += 1
        now_ns = monotonic_ns()
        if now_ns > self.late_ns:
            self._stop()
        late = self.over_ns > 0
        if not late:
            self.last_ns = now_ns
            if self.sampler is not None:
                self.sampler.steps.append(now_ns)
                self.sampler.made_here()
            if session.classes.is_other(session.observers.signals.take()):
                self._other(before_ns, now_ns)
        # Ranks must go on after the same step, even if one of them was late.
        if (not late or self.together) and (
            self.steps < self.wanted if self.wanted else now_ns < self.until_ns
        ):
            return
        self._stop()
        self._judge()
        self._go_on()

    def _other(self, began_ns: int, ended_ns: int) -> None:
        """A step of another class, such as one with an evaluation: where each sample's time is known, it
        counts for no line, and the window goes on for as long."""
        if isinstance(self.sampler, Frames):
            self.sampler.others.append((began_ns, ended_ns))
            self.left_out_ns += ended_ns - began_ns
            self.until_ns += ended_ns - began_ns
        else:
            self.others_ns += max(0.0, ended_ns - began_ns - self.step_ns)

    def _judge(self) -> None:
        """Keep the samples, or note why they cannot be used."""
        session = self.session
        sampled_ns = self.last_ns - self.began_ns
        if self.sampler is None:
            return  # ``begin`` has noted why
        usual_ns = sampled_ns - self.left_out_ns
        short = self.left_out_ns > 0 and usual_ns < (1 - AFTER) * self.window_ns
        if short or self.others_ns > OTHERS * sampled_ns:
            session.samples.why = "something else ran, such as an evaluation"
        elif self.over_ns - self.last_ns > AFTER * sampled_ns:
            session.samples.why = "too few steps were left"
        else:
            session.samples.sampler = self.sampler

    def _go_on(self) -> None:
        self.session.look_closely()

    def _stop(self) -> bool:
        """Stop the sampler. False if that was done before."""
        if not self.ending.acquire(blocking=False):
            return False
        self.over_ns = monotonic_ns()
        self.session.observers.workers.sample(False)
        if self.sampler is not None:
            self.sampler.stop()
        return True

    def can_restart(self, better: bool) -> bool:
        return better

    def abandon(self) -> None:
        self._stop()

    def ended(self) -> None:
        self._stop()


class LastSampling(Sampling):
    """Samples after the capture. Used for a block in the user's own process, where steps may be few."""

    complete = True

    def __init__(self, session: Session, captured: list[int]) -> None:
        """``captured``: the boundaries of the captured steps."""
        super().__init__(session)
        self.captured = captured

    def _limit(self) -> None:
        """The block may have no more steps."""
        self.deadline = self.after(LONGEST * self.window_ns / 1e9 + START_S, self.cut_short)

    def _stop(self) -> bool:
        self.deadline.cancel()
        return super()._stop()

    def tick(self) -> None:
        if not self.ending.locked():
            super().tick()

    def cut_short(self) -> None:
        """Also where the deadline has passed without enough steps; then it runs on the timer's thread."""
        if self._stop():
            self._judge()
            self._go_on()

    def _go_on(self) -> None:
        self.session.finish_capture(self.captured)

    def ended(self) -> None:
        self.at_end = True
        self.session.guarded(self.cut_short, None)()

    def can_restart(self, better: bool) -> bool:
        return False
