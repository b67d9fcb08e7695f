"""The windows, one after the other, and what is recorded in each. Step boundaries drive it.

profile: waiting, warm-up, timing, sampling, survey, rehearsal, capture; then the run folder.
time:    waiting, warm-up, timing; then the figures.
whole:   the capture is the whole script.
"""

import os
import sys
import threading
from time import time_ns

from . import imports, windows
from .observers import Observers
from .tracing import WatchedThreads


class Stopped(KeyboardInterrupt):
    """Ends the script as Ctrl-C would, once everything is measured."""


class Session:
    def __init__(self, control, pipe):
        self.control = control
        self.pipe = pipe
        self.stage = "starting"
        self.stopping = False
        self.torch = None
        self.steps = None
        self.observers = None
        self.stamps = []
        self.timed = ()
        self.notes = list(control.notes)
        self.begun = time_ns()
        self.recorder = None
        self.count = 0  # step boundaries seen; ``missed`` came before the beat was found
        self.missed = 0

    # The script's torch, and the beat.

    def torch_is_here(self, torch):
        from .steps import Steps

        self.torch = torch
        self.begun = time_ns()
        self._seed()
        roots = tuple(dict.fromkeys((os.path.dirname(self.script()), os.getcwd())))
        self.observers = Observers(torch, roots, self.control.request["include"])
        self.observers.install()
        self.threads = WatchedThreads(self.observers.user_files)
        if sys.version_info < (3, 12) and self.control.purpose != "time":
            self.threads.start()
        if self.control.purpose == "whole":
            self._begin_whole()
            return
        self.steps = Steps(self._first_step, self._restart, self.observers, self.observers.step_expected)
        self.observers.sites.compiling = self.steps.compiling
        self.steps.install(torch)
        self.stage = "waiting"
        self.pipe.progress("waiting", 0, None, "waiting for the first step")

    def _seed(self):
        seed = self.control.seed
        if seed is None:
            return
        import random

        random.seed(seed)
        self.torch.manual_seed(seed)
        imports.when_imported("numpy", lambda numpy: numpy.random.seed(seed))

    def _restart(self):
        """A better beat was found: what was seen so far were not the steps. False: it is too late."""
        if self.stage not in ("waiting", "warmup", "timing"):
            return False
        self.stage = "waiting"
        self.count = 0
        self.steps.on_step = self._first_step
        return True

    def _first_step(self):
        self.stage = "warmup"
        self.count = 1
        self.missed = self.steps.heard_of_anchor() - 1
        self.stamps = [time_ns()]
        self.steps.on_step = self._warmup_step
        if self.control.windows["warmup"] == 0:
            self._begin_timing(0)

    def _warmup_step(self):
        self.stamps.append(time_ns())
        self.count += 1
        durations = differences(self.stamps)
        wanted = self.control.windows["warmup"]
        self.pipe.progress("warmup", len(durations), wanted, "warm-up %s" % of(len(durations), wanted))
        if (
            windows.settled(durations, self.observers.compiled_since_last())
            if wanted is None
            else len(durations) >= wanted
        ):
            self._begin_timing(sorted(durations[-3:])[len(durations[-3:]) // 2])

    # Timing: one time stamp a step.

    def _begin_timing(self, step_ns):
        self.stage = "timing"
        wanted = self.control.windows["timed"] or windows.timed_steps(step_ns)
        self.pipe.progress("timing", 0, wanted, "timing %d steps" % wanted)
        self.steps.quiet()
        if self.control.purpose == "profile":
            self.observers.start_timing()
        stamps = self.stamps = []
        stamp, last = stamps.append, wanted + 1
        may_grow = not self.control.windows["timed"]

        def tick():
            nonlocal last
            stamp(time_ns())
            if len(stamps) == last:
                more = windows.more_timed_steps(last - 1, stamps[-1] - stamps[0]) if may_grow else 0
                if more:
                    last += more
                else:
                    self._end_timing()

        self.steps.on_step = tick
        self._synchronize()
        stamp(time_ns())

    def _end_timing(self):
        self._synchronize()
        self.stamps[-1] = time_ns()
        self.timed = differences(self.stamps)
        self.count += len(self.timed)
        if self.control.purpose == "time":
            self._finish_timing()
        else:
            self.observers.stop_timing(len(self.timed))
            self._begin_sampling()

    def _finish_timing(self):
        from . import folder, machine

        self.steps.remove()
        self.observers.remove()
        folder.write(
            self.control.folder,
            "timing.json",
            {
                "steps_ns": self.timed,
                "losses": self.observers.losses.values(),
                "peak_bytes": machine.peak_bytes(self.torch),
                "step_source": self.steps.chosen,
                "device": machine.device(self.torch)["kind"],
            },
        )
        self._done()

    # Sampling: where the host's time goes without anything on; then one step looked at closely.

    def _begin_sampling(self):
        from .locations import Locations
        from .recorder import Recorder

        locations = Locations(self.observers.user_files, self.observers.names)
        self.recorder = Recorder(self.torch, self.control, self.script(), locations)
        self.left = self.control.windows["sampled"]
        if self.left is None:
            self.left = windows.sampled_steps(sum(self.timed) // len(self.timed))
        if self.left == 0:
            self._begin_capture()
            return
        self.steps.on_step = self._sampled_step
        self.recorder.start_sampling()

    def _sampled_step(self):
        self.count += 1
        self.left -= 1
        if self.left > 0:
            return
        self.recorder.stop_sampling()
        if self.observers.start_survey():
            self.steps.on_step = self._surveyed
        else:
            self._begin_capture()

    def _surveyed(self):
        self.count += 1
        self.observers.stop_survey()
        self._begin_capture()

    # Capture: profiler and line records.

    def _begin_capture(self):
        self.stage = "capturing"
        self.pipe.progress("capturing", 0, self.control.windows["captured"], "starting the profiler")
        self.threads.tracing = self.recorder.lines
        self.recorder.start()
        self.steps.on_step = self._rehearsed

    def _rehearsed(self):
        """The profiler's own first step is slow and is not counted; the next ones are."""
        self._synchronize()
        self.count += 1
        self.observers.garbage.start()
        self.stamps = [time_ns()]
        self.steps.on_step = self._captured_step

    def _captured_step(self):
        done, wanted = len(self.stamps), self.control.windows["captured"]
        if done == wanted:
            self._synchronize()
        self.stamps.append(time_ns())
        self.count += 1
        self.pipe.progress("capturing", done, wanted, "capturing %s" % of(done, wanted))
        if done == wanted:
            self.recorder.stop()
            self.steps.remove()
            self._write()
            self._done()

    # A script without steps.

    def _begin_whole(self):
        from .locations import Locations
        from .recorder import Recorder

        self.stage = "capturing"
        self.pipe.progress("capturing", 0, None, "capturing the whole script")
        self.timed = tuple(self.control.windows["whole_ns"])
        self.recorder = Recorder(
            self.torch,
            self.control,
            self.script(),
            Locations(self.observers.user_files, self.observers.names),
        )
        self.threads.tracing = self.recorder.lines
        self.recorder.start()
        self.observers.garbage.start()
        self.stamps = [time_ns()]

    def _end_whole(self):
        self._synchronize()
        self.stamps.append(time_ns())
        self.recorder.stop()
        self._write()
        self.stage = "done"
        self.pipe.send("ready", world=self.control.world)

    # The end.

    def _write(self):
        self.pipe.progress("writing", 0, None, "writing the run")
        self.observers.facts["gc_ns"] = self.observers.garbage.stop()
        self.observers.remove()
        self.recorder.write(
            {
                "step_source": self.steps.chosen if self.steps else "whole",
                "timed_ns": self.timed,
                "captured": list(zip(self.stamps[:-1], self.stamps[1:])),
                "notes": [*self.notes, *self.recorder.notes, *self.observers.notes()],
            },
            self.observers.all_facts(),
        )

    def _done(self):
        """All is written: tell it, take our hands off the script, and end it unless it may go on."""
        imports.stop_waiting()
        self.threads.stop()
        self.stage = "done"
        self.pipe.send("ready", world=self.control.world)
        if self.control.purpose == "profile" and self.control.request["whole_run"]:
            return
        self.stopping = True
        if threading.current_thread() is not threading.main_thread():
            import _thread

            _thread.interrupt_main()
        raise Stopped()

    def ended(self, error):
        """The script is over: by itself (``error`` None or SystemExit), or by an exception."""
        status = getattr(error, "code", None) if isinstance(error, SystemExit) else None
        clean = error is None or (isinstance(error, SystemExit) and status in (None, 0, False))
        if clean and self.control.purpose == "whole" and self.recorder is not None:
            self._end_whole()
        self.pipe.send(
            "ended",
            stage=self.stage,
            steps=self.count + self.missed,
            boundaries=self.count,
            clean=clean,
            status=status if isinstance(status, int) else None,
            error=None if clean or isinstance(error, SystemExit) else type(error).__name__,
            message=str(error)[:300],
            whole_ns=time_ns() - self.begun,
            torch=self.torch is not None,
        )

    def forget(self):
        """In a forked child, a loader's worker say: leave it alone."""
        self.pipe.close()
        if self.recorder is not None:
            self.recorder.forget()

    def script(self):
        main = sys.modules["__main__"]
        return os.path.abspath(getattr(main, "__file__", None) or self.control.request["target"])

    def _synchronize(self):
        if self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()


def differences(stamps):
    return tuple(after - before for before, after in zip(stamps[:-1], stamps[1:]))


def of(done, wanted):
    return "%d" % done if wanted is None else "%d/%d" % (done, wanted)
