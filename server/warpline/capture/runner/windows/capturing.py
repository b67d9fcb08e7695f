"""The windows that look closely: the survey of one step, and the capture."""

from __future__ import annotations

from dataclasses import replace
from time import time_ns
from typing import TYPE_CHECKING

from ....wire.stages import CAPTURING
from .. import ranks
from ..device import kinds
from . import lengths
from .queued import Queued
from .sampling import LastSampling
from .stages import Stage, progress_text

if TYPE_CHECKING:
    from ..session import Session

#: How often a window is started again because it contains a step of another class.
TRIES = 8
#: Seconds that ranks wait until each has saved its trace. Some hundred MB take seconds to a minute.
SAVING_S = 120.0


def stop(session: Session, queued: Queued) -> None:
    """End the recording after the captured steps, and keep it."""
    session.observers.facts["queued_ns"] = queued.stop()
    session.recorder.stop()
    session.observers.facts["gc_ns"] = session.observers.garbage.stop()


class Survey(Stage):
    """Surveys one step, which may be slow. With a device, two steps: the first times the host's waits for the
    device, without recording operators, because a host slowed by that would not wait. The second records
    operators."""

    tries = 0
    waits = False

    def begin(self) -> None:
        self.waits = kinds.used(self.session.torch).accelerated
        if not self.session.observers.start_survey(operators=not self.waits):
            self.session.go(Capture)

    def tick(self) -> None:
        self.session.boundaries += 1
        self.session.observers.stop_survey()
        self.tries += 1
        if self.session.classes.is_other(self.session.observers.signals.take()) and self.tries < TRIES:
            self.begin()
            return
        if self.waits:
            self.waits = False
            self.session.observers.start_dataflow()
            return
        self.session.go(Capture)

    def can_restart(self, better: bool) -> bool:
        return better

    def forked(self) -> None:
        self.session.observers.stop_survey()

    def abandon(self) -> None:
        self.session.observers.stop_survey()


class FirstSurvey(Stage):
    """A survey before the timing, for scripts with few steps. It is also the last step of the warm-up."""

    def begin(self) -> None:
        self.watching = self.session.observers.start_survey()

    def tick(self) -> None:
        self.session.boundaries += 1
        self.abandon()
        self.session.go(self.session.timing)

    def can_restart(self, better: bool) -> bool:
        return True

    def forked(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        if self.watching:
            self.session.observers.stop_survey()


class Capture(Stage):
    """Captures steps with the profiler and the line records.

    The first recorded step is slow and is not counted (``rehearse``). If steps are too few for that, the
    profiler records one operator of ours before the first step instead (``prime``).
    """

    weighed = 0  # steps that may be captured, by the size of the trace of one; 0: unknown, not reduced
    looked = False  # quick loops were searched for, with all that the search needs
    resting = False
    all_threads = False
    tries = 0  # captures that ended with a step of another class
    longest = 0  # the most steps that one of those had before it

    def begin(self) -> None:
        self.stamps: list[int] | None = None  # boundaries in ns; None while steps do not count yet
        self.session.pipe.progress(CAPTURING, 0, self.session.windows.captured, "starting the profiler")
        # Only the thread that started a recording of one thread can end it.
        self.all_threads = self.all_threads or self.session.steps.moves
        if self.session.windows.rehearse and not self.weighed:
            self.session.recorder.start(self.all_threads)
            return
        self.session.recorder.prime()
        self.session.recorder.start(self.all_threads)
        self.wanted = self._most()
        self._count()

    def _most(self) -> int:
        most = self.session.windows.captured
        return min(self.weighed or most, most)

    def rest(self, all_threads: bool) -> None:
        """Start the capture again, but one step later. A range that is open now would end in the next
        recording and write to freed memory of this one (torch only checks that some recording is active)."""
        self.resting = True
        self.stamps = None  # what was captured until now does not count, even if the script ends here
        self.all_threads = all_threads
        ranks.writes_no_more(self.session.control)

    def tick(self) -> None:
        session = self.session
        session.boundaries += 1
        other = session.classes.is_other(session.observers.signals.take())
        if self.resting:
            self.resting = False
            self.begin()
            return
        if self.stamps is None:
            self._rehearsed()
            return
        done, wanted = len(self.stamps), self.wanted
        if other and self._try_again(done - 1):
            return
        if done == wanted:
            session.synchronize()
        self.stamps.append(time_ns())
        if done == wanted:
            ranks.writes(session.control)  # stopping the profiler takes long
        if done == wanted and not (session.recorder.holds() and self._small_enough()):
            session.observers.garbage.stop()
            self.rest(self.all_threads)
            return
        session.recorder.step(done + 1 if done < wanted else None)
        session.pipe.progress(CAPTURING, done, wanted, "capturing %s" % progress_text(done, wanted))
        if done == wanted:
            self._captured(self.stamps)

    def _try_again(self, done: int) -> bool:
        """Start again after a step of another class, which followed ``done`` usable ones; after half of the
        tries, with fewer steps. False after ``TRIES`` tries."""
        session = self.session
        self.tries += 1
        self.longest = max(self.longest, done)
        if self.tries >= TRIES:
            if self.tries == TRIES:
                session.notes.append("some captured steps also did something else, such as an evaluation")
            return False
        if self.tries >= TRIES // 2:
            fewer = max(1, min(self.longest, session.windows.captured))
            session.windows = replace(session.windows, captured=fewer)
        session.observers.garbage.stop()
        session.recorder.discard()
        self.rest(self.all_threads)
        return True

    def _small_enough(self) -> bool:
        """Whether the trace is small enough to keep. If not, the capture is discarded and the next one has
        fewer steps. A capture of more steps than usual is always kept: the user asked for it."""
        session = self.session
        if session.windows.captured > lengths.USUAL_STEPS:
            return True
        size = session.recorder.save()
        room = lengths.fewer_steps(self.wanted, size) or self.wanted
        fewer = min(session.agreement.of("bytes", room, SAVING_S))
        if fewer >= self.wanted:
            return True
        whose = "the trace" if fewer == room else "another rank's trace"
        much = "%d MB" % (size // 1_000_000) if fewer == room else "too many bytes"
        session.notes.append(
            "%s of %d steps has %s: only %d were kept (--steps %d keeps more)"
            % (whose, self.wanted, much, fewer, lengths.USUAL_STEPS + 1)
        )
        session.windows = replace(session.windows, captured=fewer)
        session.recorder.discard()
        return False

    def _captured(self, stamps: list[int]) -> None:
        session = self.session
        stop(session, self.queued)
        if session.samples_lines() and session.windows.sampled_last:
            session.go(lambda session: LastSampling(session, stamps))
        else:
            session.finish_capture(stamps)

    def _rehearsed(self) -> None:
        session = self.session
        if any(session.agreement.of("threads", session.recorder.needs_all_threads())):
            session.recorder.discard()
            self.rest(all_threads=True)
            return
        session.synchronize()
        if not self.looked and session.windows.look:  # not set if steps are few
            with_events = session.recorder.recording.events
            again = session.recorder.find_loops(sum(session.timed) / len(session.timed))
            self.looked = with_events or not again
            if again:
                self.rest(self.all_threads)
                return
        session.recorder.choose_library_lines(sum(session.timed) / len(session.timed))
        lines = session.recorder.locations.forget_all_but_last()
        most = self._most()
        room = lengths.captured_steps(most, lines)
        self.wanted = min(session.agreement.of("lines", room))
        if self.wanted < most:
            where = "a step" if room == self.wanted else "a step of another rank"
            many = "%d" % lines if room == self.wanted else "too many"
            session.notes.append(
                "%s runs %s lines of Python: only %d of %d steps were captured"
                % (where, many, self.wanted, session.windows.captured)
            )
        surveyed = session.observers.facts.get("dataflow")
        calls = surveyed.calls if surveyed is not None else 0
        weigh = not self.weighed and lengths.is_weighed(self.wanted, calls)
        if any(session.agreement.of("calls", weigh)):
            self._weigh()
            self.rest(self.all_threads)
            return
        self._count()

    def _weigh(self) -> None:
        """Discard what was recorded, which is one step, and see how many such steps may be captured. The next
        recording counts from its first step on: a second rehearsal would double a large trace."""
        session = self.session
        ranks.writes(session.control)  # stopping the profiler takes long
        session.recorder.stop()
        size = session.recorder.save()
        session.recorder.discard()
        left = self.wanted - int(session.recorder.few_steps)  # where they are counted, this took one of them
        room = max(1, min(left, lengths.QUICK_BYTES // max(size, 1)))
        self.weighed = min(session.agreement.of("weight", room, SAVING_S))
        if self.weighed < left:
            whose = "a step" if room == self.weighed else "a step of another rank"
            session.notes.append(
                "the trace of %s has %d MB: only %d of %d steps %s captured (--steps %d captures more)"
                % (whose, size // 1_000_000, self.weighed, self.wanted,
                   "was" if self.weighed == 1 else "were", lengths.USUAL_STEPS + 1)
            )  # fmt: skip

    def _count(self) -> None:
        self.session.observers.garbage.start()
        self.session.recorder.step(1)
        self.queued = Queued()
        self.stamps = [time_ns()]

    def ended(self) -> None:
        """The script has ended within the capture: keep the steps that are complete."""
        if self.stamps is not None and len(self.stamps) > 1:
            self.session.guarded(self._finish_early, None)()

    def _finish_early(self) -> None:
        stamps, session = self.stamps or [], self.session
        if session.recorder.holds():
            self.at_end = True
            done, wanted = len(stamps) - 1, self.wanted
            session.notes.append("the script ended after %d of %d captured steps" % (done, wanted))
            stop(session, self.queued)
            session.finish_capture(stamps)

    def can_restart(self, better: bool) -> bool:
        return better

    def excuse(self, duration_ns: int, long: bool) -> None:
        """If ``long``, the running step is not typical: count captured steps from the next one on."""
        if long and self.stamps is not None:
            self.session.observers.garbage.stop()
            self.stamps = None

    def abandon(self) -> None:
        self.session.observers.garbage.stop()
        self.session.recorder.discard()


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
