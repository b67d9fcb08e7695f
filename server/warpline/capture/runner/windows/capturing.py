"""The capture: steps recorded with the profiler and line by line."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from time import time_ns

from ....wire.messages import Pausing
from ....wire.stages import CAPTURING
from .. import ranks
from ..device import kinds
from . import lengths
from .prefill import Prefill
from .queued import Queued
from .reserve import Reserve, is_missed
from .saving import save, stop
from .stages import Stage, progress_text

#: How often a window is started again because it contains a step of another class.
TRIES = 8
#: Seconds that ranks wait until each has saved its trace. Some hundred MB take seconds to a minute.
SAVING_S = 120.0
#: What a search for quick loops came to: they cost too little to matter; a recording with the times at which
#: operators began is needed; it is done.
NOTHING, NEEDS_EVENTS, FOUND = 0, 1, 2


class Capture(Stage):
    """Captures steps with the profiler and the line records.

    The first recorded step is slow and is not counted (``rehearse``). If steps are too few for that, the
    profiler records one operator of ours before the first step instead (``prime``).

    A capture of many steps pauses now and then (``_pause``): torch needs 2 KB of memory for each event until
    it is written, and as long to write it as the script to make it.
    """

    weighed = 0  # steps that may be captured, by the size of the trace of one; 0: unknown, not reduced
    looked = False  # quick loops were searched for, with all that the search needs
    resting = False
    all_threads = False
    tries = 0  # captures that ended with a step of another class
    longest = 0  # the most steps that one of those had before it
    before: tuple[int, ...] = ()  # boundaries up to the last pause; later ones are moved back to follow them
    queued: Queued
    wanted = 0  # steps in all
    slice = 0  # steps of this recording
    next = 0  # steps from one pause to the next; 0: unknown

    def begin(self) -> None:
        self.stamps: list[int] | None = None  # boundaries in ns; None while steps do not count yet
        session = self.session
        session.pipe.progress(CAPTURING, self._before(), session.windows.captured, "starting the profiler")
        # Only the thread that started a recording of one thread can end it.
        self.all_threads = self.all_threads or self.session.steps.moves
        pages = session.observers.memory.pages_a_step
        on_cpu = not kinds.used(session.torch).accelerated
        if on_cpu and pages is not None and is_missed(pages, session.step_ns):
            session.recorder.reserve = session.recorder.reserve or Reserve()
        if session.windows.rehearse and not self.weighed and not self.before:
            session.recorder.start(self.all_threads)
            return
        session.recorder.prime()
        session.recorder.start(self.all_threads)
        self.wanted = min(self.wanted, self._most()) if self.before else self._most()
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
        if self.stamps is None and self.before:  # what was recorded until now would lie in earlier steps
            session.recorder.discard()
            self.rest(self.all_threads)
            return
        if self.stamps is None:
            self._rehearsed()
            return
        done, wanted = len(self.stamps), self.slice
        if other and self._try_again(done - 1):
            return
        if done == wanted:
            session.synchronize()
        self.stamps.append(time_ns())
        self._made_here()
        self.queued.boundary()
        if done == wanted:
            ranks.writes(session.control)  # stopping the profiler takes long
        over = self._before() + done >= self.wanted
        if done == wanted and (self.before or not over):
            self._tell()
        if done == wanted and not (self._holds(over) and self._small_enough()):
            session.observers.garbage.stop()
            self.rest(self.all_threads)
            return
        session.recorder.step(done + 1 if done < wanted else None)
        so_far = self._before() + done
        session.pipe.progress(
            CAPTURING, so_far, self.wanted, "capturing %s" % progress_text(so_far, self.wanted)
        )
        if done == wanted and not over:
            self._pause(self.stamps)
        elif done == wanted:
            self._captured(self.stamps)

    def _before(self) -> int:
        """Number of steps up to the last pause."""
        return max(0, len(self.before) - 1)

    def _moved(self, stamps: list[int]) -> list[int]:
        """All boundaries, without the pauses. Those of this recording are ``stamps``."""
        earlier_ns = self.session.recorder.earlier_ns
        return [*self.before, *(stamp - earlier_ns for stamp in stamps[bool(self.before) :])]

    def _tell(self) -> None:
        """What was written before can be read while the profiler is stopped."""
        with contextlib.suppress(OSError):
            self.session.pipe.send(Pausing(self.session.recorder.written()))

    def _pause(self, stamps: list[int]) -> None:
        """Write what was captured since the last pause, and go on one step later."""
        size = self._save()
        if size is None:
            self._go_on(self._moved([]))
            return
        self.session.recorder.keep()
        self.before = tuple(self._moved(stamps))
        self.next = lengths.next_slice(size, len(stamps) - 1)
        self.rest(self.all_threads)

    def _save(self) -> int | None:
        return save(self.session, self.queued, self._before(), self.wanted)

    def _pauses(self) -> bool:
        """Whether this capture may pause. With a device it would wait for it there, and that wait would be
        taken for the script's; ranks would have to agree."""
        session = self.session
        windows, alone = session.windows, session.control.world == 1
        plenty = windows.captured > lengths.USUAL_STEPS and not session.recorder.few_steps
        plain = not session.control.request.nvtx and not session.observers.frameworks.generated_ns
        return alone and plenty and plain and not kinds.used(session.torch).accelerated

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
            before = self._before()
            fewer = max(before + 1, min(before + self.longest, session.windows.captured))
            session.windows = replace(session.windows, captured=fewer)
        session.observers.garbage.stop()
        session.recorder.discard()
        self.rest(self.all_threads)
        return True

    def _small_enough(self) -> bool:
        """Whether the trace is small enough to keep. If not, the capture is discarded and the next one has
        fewer steps. A capture of more steps than usual is always kept: the user asked for it."""
        session = self.session
        if session.windows.captured > lengths.USUAL_STEPS or self.before:
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
        if not self.before:
            stop(self.session, self.queued)
        elif self._save() is None:
            stamps = []
        self._go_on(self._moved(stamps))

    def _go_on(self, stamps: list[int]) -> None:
        self.session.go(lambda session: Prefill(session, stamps))

    def _rehearsed(self) -> None:
        session = self.session
        if any(session.agreement.of("threads", session.recorder.needs_all_threads())):
            session.recorder.discard()
            self.rest(all_threads=True)
            return
        session.synchronize()
        if not self.looked and session.windows.look and self._looks_again():  # not set if steps are few
            self.rest(self.all_threads)
            return
        most = self._most()
        sure = 1 if lengths.is_weighed(most, self._calls()) else most
        session.recorder.choose_library_lines(sum(session.timed) / len(session.timed), sure)
        lines = session.recorder.locations.forget_all_but_last()
        room = lengths.captured_steps(most, lines)
        self.wanted = min(session.agreement.of("lines", room))
        if self.wanted < most:
            where = "a step" if room == self.wanted else "a step of another rank"
            many = "%d" % lines if room == self.wanted else "too many"
            session.notes.append(
                "%s runs %s lines of Python: only %d of %d steps were captured"
                % (where, many, self.wanted, session.windows.captured)
            )
        weigh = not self.weighed and lengths.is_weighed(self.wanted, self._calls())
        if any(session.agreement.of("calls", weigh)):
            self._weigh()
            self.rest(self.all_threads)
            return
        self._count()

    def _looks_again(self) -> bool:
        """Search what was recorded for quick loops. True if that recording was discarded, on this rank or on
        another one: then all start again."""
        recorder = self.session.recorder
        with_events = recorder.recording.events
        again = recorder.find_loops(sum(self.session.timed) / len(self.session.timed))
        mine = NOTHING if not again else FOUND if with_events else NEEDS_EVENTS
        most = max(self.session.agreement.of("loops", mine))
        self.looked = most != NEEDS_EVENTS
        if most != NOTHING and not again:
            recorder.discard()
        return most != NOTHING

    def _holds(self, last: bool) -> bool:
        """End this recording; False if it was discarded (``Recorder.holds``), on this rank or on another."""
        session = self.session
        holds = session.recorder.holds(last)
        if session.windows.look and not all(session.agreement.of("holds", holds)):
            if holds:
                session.recorder.discard()
            return False
        return holds

    def _calls(self) -> int:
        """Calls of operators in the surveyed step; 0 if that is unknown."""
        surveyed = self.session.observers.facts.get("dataflow")
        return surveyed.calls if surveyed is not None else 0

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
        self.slice = self.wanted - self._before()
        if self._pauses():
            self.slice = min(self.slice, self.next or lengths.first_slice(self._calls()))
        self.session.observers.garbage.start()
        self.session.recorder.step(1)
        self.queued = Queued()
        self.stamps = [time_ns()]
        if not self.before:
            self.session.observers.facts["step_threads"] = []
        self._made_here()
        if self.before:  # whole microseconds, as torch's times have them
            self.session.recorder.earlier_ns = (self.stamps[0] - self.before[-1]) // 1000 * 1000

    def _made_here(self) -> None:
        """Note the thread of a boundary."""
        threads, here = self.session.observers.facts["step_threads"], threading.get_native_id()
        if here not in threads:
            threads.append(here)

    def ended(self) -> None:
        """The script has ended within the capture: keep the steps that are complete."""
        if self.before or (self.stamps is not None and len(self.stamps) > 1):
            self.session.guarded(self._finish_early, None)()

    def _finish_early(self) -> None:
        session, stamps = self.session, list(self.before)
        if self.stamps is not None and len(self.stamps) > 1 and session.recorder.holds(last=True):
            if self._save() is not None:
                stamps = self._moved(self.stamps)
        elif self.before:
            session.recorder.only_before()
        if stamps:
            self.at_end = True
            done, wanted = len(stamps) - 1, self.wanted
            session.notes.append("the script ended after %d of %d captured steps" % (done, wanted))
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
        self.session.recorder.forget_before()
