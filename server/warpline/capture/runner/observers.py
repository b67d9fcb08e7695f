"""Records everything besides the steps, as facts of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from ...wire.dataflow import Dataflow
from .births.frameworks import Frameworks
from .births.sites import Sites
from .compiled.graphs import Compiled
from .compiled.regions import Regions, Watch
from .device import kinds, machine
from .device.cudagraphs import CudaGraphs
from .device.memory import MemoryWatch
from .device.nvml import NvmlWatch
from .device.triton import TritonLaunches
from .device.usermarks import UserMarks
from .steps.beat import PATIENCE_BEFORE_BACKWARD_S, PATIENCE_EVALUATED_S, PATIENCE_S
from .steps.losses import Losses
from .steps.signals import Signals
from .waits.batches import Batches
from .waits.garbage import Garbage
from .windows.queued import CoreWatch
from .workers.lines import WorkerLines
from .workers.merged import merged

if TYPE_CHECKING:
    from .before import Before
    from .dataflow.mode import Recording
    from .waits.survey import Survey


COMPILED = "code is compiled, and would be compiled again for it"


class Observers:
    """All observers. Installed when the script imports torch; reduced to almost none while steps are
    timed."""

    def __init__(self, torch: ModuleType, before: Before, folder: str, trains: Callable[[], bool]) -> None:
        """``trains()``: whether the script's text calls ``backward()``, asked at its first step."""
        self.torch = torch
        self.trains_by_text = trains
        self.before = before
        self.user_files = before.user_files
        self.names = before.names
        self.signals = Signals()
        self.losses = Losses()
        self.sites = Sites(self.user_files, self.names, before.arguments)
        self.frameworks = Frameworks(self.sites)
        self.compiled = Compiled(self.user_files)
        self.regions = Regions()
        self.cuda_graphs = CudaGraphs(self.user_files, self.names)
        self.workers = WorkerLines(self.user_files, self.names, folder)
        self.marks = UserMarks()
        self.garbage = Garbage()
        self.memory = MemoryWatch(torch)
        self.nvml: NvmlWatch | None = None
        self.cores: CoreWatch | None = None
        self.survey: Survey | None = None
        self.recording: Recording | None = None
        self.recorded: Recording | None = None  # the last step whose operators were
        self.first: Recording | None = None  # the one before it, which the facts are about
        self.operators = True  # the surveyed step's operators are recorded
        self.triton = TritonLaunches(self.sites.place)
        self.compilations = 0
        self.batches = Batches(self.sites, self.signals)
        self.optimizer_steps: dict[int, int] = {}  # id -> times
        self.facts: dict[str, Any] = {"memory": {}, "nvml": {}, "gc_ns": [], "gc_timed_ns": 0}

    def install(self) -> None:
        """Install everything that watches the script, before it runs."""
        self.signals.install(self.torch)
        self.losses.install(self.torch)
        self.sites.install(self.torch)
        self.batches.install()
        self.frameworks.install()
        self.compiled.install()
        self.marks.install(self.torch)
        self.cuda_graphs.install(self.torch)
        self.workers.install()

    def stepped(self, optimizer: Any, frame: FrameType | None) -> None:
        """An optimizer made a step, called at or outside ``frame``."""
        self.optimizer_steps[id(optimizer)] = self.optimizer_steps.get(id(optimizer), 0) + 1
        self.sites.use(optimizer, frame)

    def optimizers(self) -> list[Any] | None:
        """The script's living optimizers. None if an optimizer made steps whose construction was not seen."""
        found = self.sites.living("optimizer")
        return found if set(self.optimizer_steps) <= {id(one) for one in found} else None

    def step_expected(self) -> float:
        """Seconds to wait for the first step of an optimizer; 0 if there will be none, or it has made one.

        A script that is going to train may make its data with a model before it makes an optimizer."""
        if self.optimizer_steps:
            return 0.0
        if not self.sites.has("optimizer"):
            return PATIENCE_BEFORE_BACKWARD_S if self.trains and not self.losses.backwards else 0.0
        if self.losses.backwards > 0:
            return PATIENCE_S
        return PATIENCE_EVALUATED_S if self.signals.evaluated else PATIENCE_BEFORE_BACKWARD_S

    @cached_property
    def trains(self) -> bool:
        """Whether the script is going to train, by its text as it was at its first batch or forward."""
        return self.trains_by_text()

    def compiled_since_last(self) -> bool:
        """Something was compiled since this was last asked."""
        before, self.compilations = self.compilations, self.compiled.compilations
        return before != self.compilations

    def start_timing(self) -> None:
        """Begin the timing window: remove what would slow the steps; watch memory and garbage collections."""
        self.workers.pause()
        self.batches.start()
        self.frameworks.generating.start_timing()
        self.losses.remove()
        self.sites.contexts.remove()
        self.memory.start()
        self.garbage.start()
        if kinds.used(self.torch).name == "cuda":
            self.nvml = NvmlWatch(self.torch)
            self.nvml.start()
        self.cores = CoreWatch()

    def read_device(self) -> None:
        """Read at the end what the driver reports about the device (such as other processes on it), for runs
        without a timing window."""
        if self.torch.cuda.is_initialized():
            self.facts["nvml"] = NvmlWatch(self.torch).facts()

    def start_recording(self) -> None:
        """The windows after the timing one begin."""
        self.cuda_graphs.recording = True
        self.workers.start()

    def stop_timing(self, steps: int, stamps: Sequence[int] = ()) -> None:
        """End the timing window after ``steps`` steps; ``stamps`` are their ends in ns."""
        if self.nvml is not None:
            self.nvml.stop()
            self.facts["nvml"] = self.nvml.facts()
        if self.cores is not None:
            self.facts["cores"] = self.cores.facts()
        self.facts["gc_timed_ns"] = sum(end - begin for begin, end in self.garbage.stop())
        self.facts["gc_full_timed_ns"] = tuple(end - begin for begin, end in self.garbage.full_spans)
        self.facts["memory"] = self.memory.stop(steps)
        self.batches.stop(steps)
        if stamps:
            self.facts["prefill_steps"] = self.frameworks.first_forwards(stamps)
            del self.frameworks.generated_ns[:-1]
            self.frameworks.generating.stop_timing(stamps, self.garbage.full_within)

    def start_survey(self, operators: bool = True) -> bool:
        """Survey one step; not what is compiled in it, which would be compiled again for the survey. False if
        that cannot be left out.

        ``operators``: record each operator, too, which slows the host many times over.
        """
        if not self._leave_out_compiled():
            return False
        from .waits.survey import Survey

        self.survey = Survey(self.torch, self.sites)
        self.survey.start()
        self.triton.start()
        if operators:
            self.start_dataflow()
        return True

    def _leave_out_compiled(self) -> bool:
        """Take what records the step off torch's stacks of modes while compiled code runs."""

        def entered(frame: FrameType) -> None:
            if self.survey is not None and self.survey.began_ns:
                self.survey.pause()
            if self.recording is not None:
                self.recording.pause(frame)

        def left(frame: FrameType) -> None:
            if self.recording is not None:
                self.recording.resume(frame)
            if self.survey is not None and self.survey.began_ns:
                self.survey.resume()

        watched = self.regions.start(Watch(entered, left))
        if not watched:
            self.facts["dataflow"] = Dataflow(COMPILED)
        return watched

    def start_dataflow(self) -> None:
        """Record the operators of the step that begins. If that is impossible, the facts say so."""
        if not self.operators:
            self.facts["dataflow"] = Dataflow("the script failed while its operators were recorded")
            return
        if not self._leave_out_compiled():
            return
        try:
            from .dataflow.inference import settle
            from .dataflow.mode import Recording

            self.signals.on_inference_end = settle
            gradients = self.first.gradients if self.first is not None else None
            compiles = bool(self.sites.compiled or self.compiled.compilations)
            self.recording = Recording(
                self.sites, self.optimizers, lambda: self.sites.living("module"), gradients, compiles
            )
            self.recording.start()
        except Exception as error:
            self.facts["dataflow"] = Dataflow(
                "this version of torch cannot be observed (%s)" % type(error).__name__
            )
            self.recording = None

    def stop_survey(self, watching: bool = False) -> None:
        """End the survey and the recording of operators, whichever runs. ``watching``: what becomes of the
        recorded step's gradients is still watched; ``record_again`` or ``compare`` ends that."""
        self.regions.stop()
        if self.survey is not None:
            self.survey.stop()
            self.triton.stop()
        if self.recording is not None:
            self.facts["dataflow"] = self.recording.stop(watching)
            self.recording, self.recorded = None, self.recording

    def record_again(self) -> bool:
        """Record the next step too, for what it computes again. False where the first was not recorded whole,
        as where kernels of the script's own or a CUDA graph write to tensors."""
        unseen = self.triton.found() or self.cuda_graphs.graphs
        flow = self.facts["dataflow"]
        if self.recorded is None:
            return False
        if (flow.around or not flow.missing) and not unseen:
            self.first = self.recorded
            self.start_dataflow()
            self.facts["dataflow"] = flow  # also where the second recording could not begin
            if self.recording is not None:
                return True
        self.facts["dataflow"] = self.recorded.with_gradients(flow)
        self.recorded = self.first = None
        return False

    def compare(self, whole: bool) -> None:
        """End the second recording, and note what both steps compute. ``whole``: the second one is complete,
        and of the first one's class."""
        flow = self.facts["dataflow"]
        self.stop_survey()
        first, second = self.first, self.recorded
        if first is not None:
            flow = first.with_gradients(flow)
        self.facts["dataflow"] = flow
        with suppress(Exception):  # what it computes again stays unknown
            from .dataflow.again import again, followed, remade

            if whole and first is not None and second is not None:
                both = first.mode, second.mode
                self.facts["dataflow"] = replace(
                    flow, again=again(*both), remade=remade(*both), followed=followed(*both)
                )
        self.recorded = self.first = None

    def remove(self) -> None:
        """Remove every hook."""
        self.losses.remove()
        self.batches.remove()
        self.sites.remove()
        self.compiled.remove()
        self.marks.remove()
        self.cuda_graphs.remove()
        self.workers.remove()
        self.garbage.forget()
        self.signals.remove()
        self.before.remove()

    def all_facts(self, stamps: Sequence[int]) -> dict[str, Any]:
        """``Facts`` of the run folder, as a dict. ``stamps``: the boundaries of the captured steps, in ns."""
        self.batches.tell(first=not self.workers.early)
        self.frameworks.look_again()
        sites = self.sites.found()
        if self.survey is not None:
            sites += [*self.survey.found(), *self.triton.found()]
        flags = replace(machine.flags(self.torch), **(self.survey.flags if self.survey is not None else {}))
        losses = self.losses.values()
        if self.losses.not_finite_at is not None:
            flags = replace(flags, loss_not_finite_at=self.losses.not_finite_at)
        return {
            **self.facts,
            "gc_full": self.garbage.full,
            "generations": self.frameworks.generating.found(stamps),
            "sites": sites,
            "flags": flags,
            "losses": losses,
            **self.before.facts(),
            **self.compiled.facts(),
            **self.cuda_graphs.facts(),
            "workers": merged(self.workers.found()),
        }

    def notes(self) -> list[str]:
        """Notes for the report about what could not be observed."""
        found: list[str] = []
        if self.compiled.provenance is False and self.compiled.compilations:
            found.append(
                "torch %s does not say which lines a compiled kernel was made from" % self.torch.__version__
            )
        return found
