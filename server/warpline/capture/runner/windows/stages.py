"""The windows: each has ``begin``, ``tick`` at every step boundary, and ``abandon``."""

from time import time_ns

from ..device.stamps import DeviceStamps, on_device
from . import lengths
from .ownprofiler import PATIENCE_STEPS

#: Steps of the warm-up that tell what the host takes; a few are no middle on a machine that others use.
LATEST = 9


class Waiting:
    """For the first step boundary."""

    name = "waiting"

    def __init__(self, session):
        self.session = session

    def begin(self):
        self.session.pipe.progress("waiting", 0, None, "waiting for the first step")

    def tick(self):
        session = self.session
        session.boundaries = 1
        session.missed = session.steps.heard_of_anchor() - 1
        session.go(session.timing if session.windows["warmup"] == 0 else Warmup)

    def abandon(self):
        pass


class Warmup(Waiting):
    """Until step times have settled; steps under the script's own profiler do not count.

    The device is idle at each end: a host that runs ahead of it would make its steps look short. How far it
    runs ahead is noted: that is what the host takes without the profiler, which no later window shows.
    """

    name = "warmup"

    def begin(self):
        self.in_the_way = 0
        self.begin_anew()

    def tick(self):
        session, profiler = self.session, self.session.own_profiler
        session.boundaries += 1
        if profiler.in_the_way:
            self.in_the_way += 1
            session.pipe.progress("waiting", 0, None, "waiting for the script's own profiler to end")
            if self.in_the_way > PATIENCE_STEPS:
                profiler.pause()
            self.begin_anew()
            return
        self.host_ns.append((time_ns() - self.begun, self._until_backward()))
        session.synchronize()
        self.stamps.append(time_ns())
        durations = differences(self.stamps)
        wanted, done = session.windows["warmup"], len(durations)
        session.pipe.progress("warmup", done, wanted, "warm-up %s" % of(done, wanted))
        compiled = session.observers.compiled_since_last()
        least_ns = lengths.WARMUP_DEVICE_NS if session.torch.cuda.is_initialized() else 0
        if lengths.settled(durations, compiled, least_ns) if wanted is None else done >= wanted:
            session.step_ns = middle(durations[-3:])
            session.host_step_ns, session.host_forward_ns = map(middle, zip(*self.host_ns[-LATEST:]))
            session.go(session.timing)
        self._begin_step()

    def begin_anew(self):
        self.stamps, self.host_ns = [time_ns()], []
        self.session.synchronize()
        self._begin_step()

    def _begin_step(self):
        self.session.observers.losses.first_ns = None
        self.begun = time_ns()

    def _until_backward(self):
        first_ns = self.session.observers.losses.first_ns
        return None if first_ns is None else first_ns - self.begun


class Timing(Waiting):
    """One time stamp a step; the device is idle at both ends."""

    name = "timing"

    def begin(self):
        session = self.session
        self.fixed = session.windows["timed"]
        has_device = session.torch.cuda.is_initialized()
        self.window_ns = lengths.WINDOW_DEVICE_NS if has_device else lengths.WINDOW_NS
        wanted = self.fixed or lengths.timed_steps(session.step_ns, self.window_ns)
        session.pipe.progress("timing", 0, wanted, "timing %d steps" % wanted)
        session.steps.quiet()
        session.own_profiler.measuring = True
        if session.control.purpose == "profile":
            session.observers.start_timing()
        self.stamps, self.last = [], wanted + 1
        self.excused = {}  # number of the step -> time in it that is not the script's
        told = session.control.purpose == "profile" and has_device
        self.device = DeviceStamps(session.torch) if told else None
        session.steps.on_step = self._quick_tick()
        session.synchronize()
        self.stamps.append(time_ns())
        if self.device is not None:
            self.device.mark()

    def _quick_tick(self):
        stamps, finished = self.stamps, self.session.guarded(self._more)
        stamp, last = stamps.append, self.last
        mark = self.device.mark if self.device is not None else None

        def tick():
            nonlocal last
            stamp(time_ns())
            if mark is not None:
                mark()
            if len(stamps) == last:
                last += finished()

        return tick

    def _more(self):
        """Steps to add, when the window turned out too short; 0 ends it."""
        session = self.session
        session.synchronize()
        self.stamps[-1] = time_ns()
        if not self.fixed:
            elapsed_ns = self.stamps[-1] - self.stamps[0]
            more = lengths.more_timed_steps(len(self.stamps) - 1, elapsed_ns, self.window_ns)
            if more:
                return more
        session.timed = self._durations()
        session.boundaries += len(session.timed)
        if session.control.purpose == "time":
            session.finish_timing()
        session.observers.stop_timing(len(session.timed))
        session.make_recorder()
        session.go(Survey if session.windows["survey"] else Capture)
        return 0

    def _durations(self):
        """Of each step, as the device saw them where there is one; what was interrupted, as the host did."""
        seen = tuple(
            duration - self.excused.get(at, 0) for at, duration in enumerate(differences(self.stamps))
        )
        if self.device is None or self.excused:
            return seen
        return on_device(seen, self.device.durations_ns() or ())

    def excuse(self, duration_ns):
        at = len(self.stamps) - 1
        self.excused[at] = self.excused.get(at, 0) + duration_ns

    def abandon(self):
        self.session.boundaries += max(0, len(self.stamps) - 1)
        self.session.observers.stop_timing(max(1, len(self.stamps) - 1))


class Survey(Waiting):
    """One step looked at closely, at whatever speed."""

    name = "survey"

    def begin(self):
        if not self.session.observers.start_survey():
            self.session.go(Capture)

    def tick(self):
        self.session.boundaries += 1
        self.session.observers.stop_survey()
        self.session.go(Capture)

    def abandon(self):
        self.session.observers.stop_survey()


class Capture(Waiting):
    """Profiler and line records. Its own first step is slow and is not counted."""

    name = "capturing"
    looked = False  # for quick loops, once
    resting = False
    all_threads = False

    def begin(self):
        self.stamps = None
        self.session.pipe.progress("capturing", 0, self.session.windows["captured"], "starting the profiler")
        self.session.recorder.start(self.all_threads)

    def rest(self, all_threads):
        """Begin once more, a step later. A range that is open now would, when it ends in the next
        recording, be written to memory of the one that has ended (torch checks only that there is one)."""
        self.resting = True
        self.all_threads = all_threads

    def tick(self):
        session = self.session
        session.boundaries += 1
        if self.resting:
            self.resting = False
            self.begin()
            return
        if self.stamps is None:
            self._rehearsed()
            return
        done, wanted = len(self.stamps), self.wanted
        if done == wanted:
            session.synchronize()
        self.stamps.append(time_ns())
        if done == wanted and not session.recorder.holds():
            session.observers.garbage.stop()
            self.rest(self.all_threads)
            return
        session.recorder.step(done + 1 if done < wanted else None)
        session.pipe.progress("capturing", done, wanted, "capturing %s" % of(done, wanted))
        if done == wanted:
            session.finish_capture(self.stamps)

    def _rehearsed(self):
        session = self.session
        if session.recorder.needs_all_threads():
            session.recorder.discard()
            self.rest(all_threads=True)
            return
        session.synchronize()
        if not self.looked and session.windows["survey"]:  # else steps are few
            self.looked = True
            if session.recorder.find_loops(sum(session.timed) / len(session.timed)):
                self.rest(self.all_threads)
                return
        session.recorder.choose_library_lines(sum(session.timed) / len(session.timed))
        lines = session.recorder.locations.forget_all_but_last()
        self.wanted = lengths.captured_steps(session.windows["captured"], lines)
        if self.wanted < session.windows["captured"]:
            session.notes.append(
                "a step runs %d lines of Python: only %d of %d steps were captured"
                % (lines, self.wanted, session.windows["captured"])
            )
        session.observers.garbage.start()
        session.recorder.step(1)
        self.stamps = [time_ns()]

    def count_anew(self):
        """The captured steps begin with the next one: this one is not as the others are."""
        if self.stamps is not None:
            self.session.observers.garbage.stop()
            self.stamps = None

    def abandon(self):
        self.session.observers.garbage.stop()
        self.session.recorder.discard()


class Whole(Waiting):
    """A script without steps: from the import of torch to the script's end."""

    name = "capturing"

    def begin(self):
        session = self.session
        session.pipe.progress("capturing", 0, None, "capturing the whole script")
        session.timed = tuple(session.windows["whole_ns"])
        session.make_recorder()
        session.recorder.start(False)
        session.observers.garbage.start()
        self.stamps = [time_ns()]

    def end(self):
        self.session.synchronize()
        self.session.finish_capture([*self.stamps, time_ns()])


def middle(durations):
    """Of those that are known; None where none is."""
    known = sorted(duration for duration in durations if duration is not None)
    return known[len(known) // 2] if known else None


def differences(stamps):
    return tuple(after - before for before, after in zip(stamps[:-1], stamps[1:]))


def of(done, wanted):
    return "%d" % done if wanted is None else "%d/%d" % (done, wanted)
