"""Controls a run from the import of torch to the run folder. The stages, by purpose:

profile: waiting, warm-up, timing, sampling (CPU only), survey, capture; then the run folder is written.
time:    waiting, warm-up, timing; then the figures are written.
whole:   one capture of the whole script.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import get_ident
from time import process_time, time_ns
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from ...wire.control import Purpose
from ...wire.messages import Compiling, Ended, Failed, Ready
from ...wire.stages import HELD, STARTING, WRITING
from . import children, endings, imports, ranks, seeds
from .agreement import Agreement
from .before import Before
from .device import kinds
from .device.alone import Alone
from .endings import Stopped, stop
from .lines.tracing import WatchedThreads
from .observers import Observers
from .places import absolute, working_folder
from .sampler.kept import KeptSamples
from .steps.beat import Steps
from .steps.classes import Classes
from .steps.looking import Loops
from .steps.nested import Nested
from .steps.turned import LoopTurns
from .steps.unmarked import Unmarked
from .turns import Turns
from .waits import samples as samples_again
from .windows import results
from .windows.capturing import Capture
from .windows.looking import Looking
from .windows.mutedprofiler import MutedProfiler
from .windows.ownprofiler import OwnProfiler
from .windows.slices import Slices
from .windows.stages import Stage, Waiting, Warmup
from .windows.surveying import FirstSurvey, Survey
from .windows.timing import Timing
from .windows.trend import Watching
from .windows.whole import Whole
from .workers.lines import EARLY

if TYPE_CHECKING:
    from ...wire.loops import Loop
    from .control import Control
    from .pipe import Pipe
    from .texts import Texts
    from .windows.recorder import Recorder

T = TypeVar("T")


class Session:
    observers: Observers  # this and ``steps`` are set by ``torch_is_here``
    steps: Steps

    def __init__(self, control: Control, pipe: Pipe, texts: Texts) -> None:
        self.control = control
        self.texts = texts
        self.before = Before(control.request, texts, follow=control.purpose is not Purpose.TIME)
        self.windows = control.windows
        self.timing = Slices if self.windows.sliced else Timing
        self.after_warmup = FirstSurvey if self.windows.survey_first else self.timing
        self.turns = Turns(control.turn, control.turn_s)
        self.pipe = pipe
        self.notes = list(control.notes)
        self.stage = Stage(self)
        self.stopping = self.over = False  # ``over``: the script has ended
        self.loops = Loops(self.windows.loops)
        self.turns_of_loop = LoopTurns() if control.request.loop is not None else None
        self.unmarked: Unmarked | None = None  # where the script's loops may be looked at next
        self.left_unmarked = False
        self.awaited = bool(control.request.first_line)  # ``first_line`` has not run yet
        self.torch: Any = None
        self._recorder: Recorder | None = None
        self.alone = Alone()
        self.step_ns = 0  # a typical step of the warm-up
        self.burst = 1  # steps between two that wait for loader workers
        self.host_step_ns: int | None = None  # the host's time for such a step, device not included
        self.host_forward_ns: int | None = None  # and for its forward
        self.timed: tuple[int, ...] = ()
        self.samples = KeptSamples()
        self.agreement = Agreement(control)
        self.classes = Classes(control.world)
        self.boundaries = self.missed = 0  # step boundaries seen; ``missed``: before the beat was found
        self.begun, self.begun_s = time_ns(), process_time()
        self.started_ns, self.rested_ns = self.begun, 0  # ``rested_ns``: waited for another profile
        self.own_profiler: OwnProfiler | MutedProfiler = OwnProfiler(self._disturbed, self._excused)
        if self.windows.muted or control.purpose is not Purpose.PROFILE:
            self.own_profiler = MutedProfiler()

    def prepare_loops(self) -> None:
        """Before the script is compiled."""
        loop = self.control.request.loop
        if self.control.purpose is Purpose.LOOPS:
            self.loops.prepare(self.texts.users)
        elif loop is not None and self.turns_of_loop is not None:
            self.turns_of_loop.prepare(loop, self._loop_is_found)

    def _loop_is_found(self, loop: Loop) -> None:
        """Keep all that is known of a loop that was given by its line only: so it can be found again in an
        edited script."""
        self.control.request = replace(self.control.request, loop=loop)

    def torch_is_here(self, torch: ModuleType) -> None:
        """The script has imported torch: install the observers and begin to look for steps."""
        self._wait_for_turn()
        self.torch = torch
        self.begun, self.begun_s = time_ns(), process_time()
        if self.control.seed is not None:
            seeds.plant(torch, self.control.seed)
        roots = tuple(dict.fromkeys((os.path.dirname(self.script()), working_folder())))
        self.before.user_files.widen(roots)
        self.observers = Observers(torch, self.before, self.control.folder, self.texts.trains)
        self.observers.operators = self.windows.operators
        self.observers.compiled.tell = lambda begun: self.pipe.send(Compiling(begun))
        self.observers.install()
        if self.control.purpose is Purpose.PROFILE:
            self.observers.garbage.watch(self.progressed)
        if self.control.purpose is Purpose.PROFILE:
            self.observers.workers.start(EARLY, second=self.windows.timed is None)
        self.threads = WatchedThreads()
        if sys.version_info < (3, 12) and self.control.purpose is not Purpose.TIME:
            self.threads.start()
        expected = self.observers.step_expected if self.windows.patient else lambda: 0.0
        self.steps = Steps(self._restart, self.observers, expected, self.windows.beat, self.turns_of_loop)
        if self.windows.may_look:
            folder = os.path.join(os.path.dirname(torch.__file__ or ""), "")
            self.steps.nested = Nested(self.observers.user_files, self.texts.text, folder)
            self.unmarked = Unmarked(torch.Tensor, self.observers, self.steps.nested)
        self.own_profiler.install()
        self.observers.sites.compiling = self.steps.compiling
        if not self.awaited:
            self._listen()

    def first_line_is_here(self) -> None:
        """``first_line`` is about to run: steps count from now on. Objects made before are known already."""
        self.awaited = False
        if self.torch is not None:
            self.begun = time_ns()
            self._listen()

    def _listen(self) -> None:
        if self.control.purpose is Purpose.WHOLE:
            self.go(Whole)
            return
        if self.control.purpose is Purpose.LOOPS:
            self.go(Looking)
            return
        self.steps.install(self.torch)
        self.go(Waiting)

    def go(self, stage: Callable[[Session], Stage]) -> None:
        """End the current stage and begin this one."""
        self.stage = stage(self)
        self.before.at_stage(type(self.stage))
        self.steps.on_step = self.guarded(self.stage.tick, None)
        self.stage.begin()

    def guarded(self, act: Callable[[], T], otherwise: T) -> Callable[[], T]:
        """``act``, with exceptions caught: they end the measurement, never the script. Then it returns
        ``otherwise``."""

        def guard() -> T:
            try:
                return act()
            except Stopped:
                raise
            except OSError as error:
                self._give_up("cannot write the run: %s" % (error.strerror or error), 2)
            except Exception as error:
                self._give_up("measuring failed with %s: %s" % (type(error).__name__, error), 1)
            return otherwise

        return guard

    def _give_up(self, message: str, status: int) -> None:
        self.pipe.send(Failed(message.partition("\n")[0], status))
        self.stage = Stage(self)
        self._stop()

    def samples_lines(self) -> bool:
        """Whether lines are sampled. Not on a device, where kernels say how long lines take. With several
        ranks only if the windows fix the number of steps, because all ranks must sample the same ones."""
        windows = self.windows
        known = self.control.world == 1 if windows.sampled is None else windows.sampled > 0
        return bool(windows.sampler) and known and not kinds.used(self.torch).accelerated

    def _why_unsampled(self) -> str:
        """Why no lines were sampled, where it was not tried."""
        if kinds.used(self.torch).accelerated:
            return "kernels say how long lines take"
        if not self.windows.sampler:
            return "install py-spy next to warpline for that"
        return "too few steps" if self.control.world == 1 else "too few steps of a rank are sampled"

    def look_closely(self) -> None:
        """All steps are timed: go on with the survey or the capture."""
        self.make_recorder()
        self.go(Survey if self.windows.survey else Capture)

    def make_recorder(self) -> None:
        """Make the recorder for the capture. Not before the warm-up: its tables need what the script has
        imported."""
        from .lines.locations import Locations
        from .windows.recorder import Recorder

        locations = Locations(self.observers.user_files, self.observers.names)
        self._recorder = Recorder(
            self.torch, self.control, self.script(), locations, self.observers.marks, self.texts
        )
        # If the number of steps is fixed, there is only one search for quick loops.
        self.recorder.few_steps = self.windows.timed is not None
        self.recorder.events = self.windows.look and self.recorder.few_steps
        self.threads.tracing = self.recorder.lines
        self.threads.go_on()
        self.observers.start_recording()

    @property
    def recorder(self) -> Recorder:
        """What captures the steps; exists once ``make_recorder`` was called."""
        assert self._recorder is not None  # made before the stages that use it begin
        return self._recorder

    def left_ns(self) -> int | None:
        """Time until the request's limit; None without one."""
        limit_s = self.control.request.timeout_s
        spent_ns = time_ns() - self.started_ns - self.rested_ns
        return None if limit_s is None else int(limit_s * 1e9) - spent_ns

    def synchronize(self) -> None:
        """Wait for the script's device."""
        kinds.used(self.torch).synchronize()

    def script(self) -> str:
        """The absolute path of the script."""
        main = sys.modules["__main__"]
        file: str = getattr(main, "__file__", None) or self.control.request.target
        return absolute(file)

    def finish_timing(self) -> None:
        """End a run of purpose "time": write its figures."""
        self._take_hands_off()
        results.write_timing(self, self.timed)
        self._tell_and_stop()

    def finish_capture(self, stamps: Sequence[int]) -> None:
        """Write the run folder; then end the script, unless it may go on.

        Nothing is written if it is unclear which loop's iterations are the steps. That is known only now:
        until here, a backward pass or an optimizer's step could still have become what marks a step.
        """
        if self.steps.in_loops():
            self.leave_off()
        self._take_hands_off()
        ranks.writes(self.control)
        self.pipe.progress(WRITING, 0, None, "writing the run")
        self.notes += self.classes.notes(self.steps.held_s)
        self.notes += [note for note in (self.own_profiler.note, self.steps.note) if note]
        locations = self.recorder.locations
        self.before.add_captured(locations)
        samples = self.samples.facts(locations.user_files, locations.codes())
        self.observers.facts["samples"] = samples or {"why": self.samples.why or self._why_unsampled()}
        self.notes += self.samples.notes()
        if self.tries_samples():
            samples_again.try_them(self.torch, self.observers.batches.loaders.values())
        results.write(self, stamps)
        ranks.writes_no_more(self.control)
        self._tell_and_stop()

    def ended(self, error: BaseException | None) -> None:
        """The script has ended by itself (``error`` is None or SystemExit) or with an exception."""
        self.over = True
        status = error.code if isinstance(error, SystemExit) else None
        clean = error is None or (isinstance(error, SystemExit) and status in (None, 0, False))
        clean = clean or self.forgives(error)
        self.boundaries += self.stage.boundaries_so_far()
        if clean or self.stage.complete:
            try:
                self.stage.ended()
            except Stopped:
                pass
        told = Ended(
            steps=self.boundaries + self.missed,
            boundaries=self.boundaries,
            held=self.steps.held if self.torch is not None else 0,
            beat=self.steps.single if self.torch is not None else None,
            nested=self.steps.in_loops() if self.torch is not None else (),
            unmarked=self.left_unmarked,
            clean=clean,
            status=status if isinstance(status, int) else None,
            error=None if clean or isinstance(error, SystemExit) else type(error).__name__,
            recording=not clean and self.torch is not None and self.observers.recording is not None,
            message=str(error)[:300],
            whole_ns=time_ns() - self.begun,
            children_s=children.processor_s(),
            own_s=process_time() - self.begun_s,
            torch=self.torch is not None,
        )
        self.pipe.send(told)

    def exits(self, status: int) -> None:
        """The script ends its process by ``os._exit``. Another thread than that of the steps may do so while
        one runs: then nothing is told."""
        here = not hasattr(self, "steps") or self.steps.thread in (None, get_ident())
        if here and not self.over and not self.stopping:
            self.ended(SystemExit(status))

    def forgives(self, error: BaseException | None) -> bool:
        """Whether to ignore ``error``: we had switched off the script's own profiler, and the script may have
        failed because it asked for data that was therefore not recorded."""
        muted = isinstance(self.own_profiler, MutedProfiler) and self.own_profiler.used
        return muted and isinstance(self.stage, (Whole, Looking)) and isinstance(error, Exception)

    def left(self, threads: list[str]) -> None:
        """Note the names of the script's threads that are no longer waited for."""
        if threads and not self.stopping:
            self.notes.append(endings.NOTE % ", ".join(threads))

    def silent(self, frame: FrameType | None) -> None:
        """No step was heard for long; the script runs ``frame``."""
        if not hasattr(self, "steps"):
            return
        self.steps.listen()
        unmarked = self.unmarked
        if unmarked is None or self.steps.cycles or not isinstance(self.stage, Waiting):
            return
        if self.guarded(lambda: unmarked.found(frame), False)():
            self.left_unmarked = True
            self.leave_off()

    def progressed(self) -> int:
        """A number that grows while the script makes steps."""
        return self.boundaries + self.stage.boundaries_so_far()

    def forget(self) -> None:
        """Stop all observation in a forked child, such as a loader's worker."""
        self.pipe.close()
        self.alone.let_go()
        self.before.executed.stop()
        if self._recorder is not None:
            self._recorder.forget()
        self.loops.stop()
        stage, self.stage = self.stage, Stage(self)  # no step of the child's counts
        if hasattr(self, "steps"):
            self.steps.on_step = self.stage.tick
        stage.forked()

    def _wait_for_turn(self) -> None:
        """Wait until no other process is being timed."""
        if not self.control.turn:
            return
        self.pipe.progress(HELD, 0, None, "waiting for its turn")
        self.next_turn()
        self.pipe.progress(STARTING, 0, None, "starting the script")

    def next_turn(self) -> bytes:
        """The server's next word. Ends the process if none arrives in time."""
        word, why = self.turns.next()
        if why:
            self._give_up(why, 1)
        return word

    def _restart(self, better: bool = False) -> bool:
        """Start again, because something else was found to mark the steps. ``better``: it is of a more
        reliable kind. False if it is too late for that."""
        if not self.stage.can_restart(better):
            return False
        self.stage.abandon()
        self.boundaries = 0
        self.go(Waiting)
        return True

    def leave_off(self) -> None:
        """End the run without a measurement."""
        self._take_hands_off()
        self.stage = Stage(self)
        self._stop()

    def _disturbed(self) -> None:
        """The script's own profiler is about to start inside one of our windows: go back to the warm-up, or
        write the run if it has all that it needs."""
        self.own_profiler.measuring = False
        if self.stage.complete:
            self.guarded(self.stage.cut_short, None)()
            return
        self.stage.abandon()
        self.go(Warmup)

    def _excused(self, act: Callable[[], T], long: bool) -> T:
        """Run ``act`` and leave its time out of the running step. ``long``: it also disturbs the rest of the
        step."""
        begin = time_ns()
        try:
            return act()
        finally:
            self.stage.excuse(time_ns() - begin, long)

    def _take_hands_off(self) -> None:
        self.alone.let_go()
        self.steps.remove()
        self.loops.stop()
        self.own_profiler.measuring = False
        self.own_profiler.remove()
        self.observers.remove()
        self.threads.stop()
        imports.stop_waiting()
        self.texts.stop()

    def _tell_and_stop(self) -> None:
        purpose, request = self.control.purpose, self.control.request
        watches = purpose is Purpose.PROFILE and request.every and not self.stage.at_end
        watching = Watching(self) if watches else None
        at_end, self.stage = self.stage.at_end, Stage(self)
        if purpose is not Purpose.TIME:
            ranks.wait_for_others(self.control, lambda told: self.pipe.progress(WRITING, 0, None, told))
            self.agreement.wait_for_other_machines(ranks.SILENT_S)
            self.agreement.forget()
        self.pipe.send(Ready(self.control.local_world))
        if self._recorder is not None:
            self._recorder.discard()  # slow, so it runs while the server reads the run
        if watching is not None:
            self.go(lambda session: watching)
        if at_end or (purpose is Purpose.PROFILE and request.whole_run):
            return
        self._stop()

    def tries_samples(self) -> bool:
        """Whether loaders' samples are tried: where that was not ruled out, and the script, which makes all
        steps by itself, is ended once the run is written."""
        request = self.control.request
        ends = not request.whole_run and not request.every
        return ends and self.control.world == 1 and request.probe_s > 0

    def _stop(self) -> None:
        self.stopping = True
        stop()
