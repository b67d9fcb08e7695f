"""A run folder: what the runner leaves behind and the server reads.

::

    RUN/
      manifest.json     Manifest; written last, by rename: a folder without it is not a run
      facts.json        Facts: what the runner saw beside the trace; among it the operators of one step and
                        the tensors between them (``wire/dataflow.py``)
      lines.bin         int64 pairs (time_ns, thread_index << 32 | location) in order of time per
                        thread: from that moment the thread is at that location. Location 0 means
                        "in no file of the user's". Bit 31 is set when Python came back to a line
                        that it had begun before (a callee returned, a generator went on).
      locations.json    Locations: the table that ``lines.bin`` indexes
      inside.bin        the same for lines of libraries below the user's; see ``wire/inside.py``
      inside.json       LibraryLocations: the table that ``inside.bin`` indexes
      trace.json        the Chrome trace as torch.profiler wrote it (``with_stack`` off)
      *.gz              once the report is made, trace.json and large *.bin are packed (gzip)
      sources.json      {path: text} of the user files that appear in Locations or in a site, and of small
                        ones below the script's folder that were imported, as they were compiled; a file
                        with uncertain text is left out
      trend.json        Trend: what was timed after the capture (may be absent); see ``wire/trend.py``
      report.json       the finished Report (cache; written by the server, may be absent)
      report.html       the page that an editor showed last (written by the server, may be absent)
      measured.json     measurements of fixes (written by the server, may be absent)
      kernel-HASH.json  KernelInside: what Nsight Compute said of a kernel (``warpline kernel``)

Nothing in it is ever unpickled or executed. All ``_ns`` stamps are unix time
(``time.time_ns()``), the clock that the trace is on once ``baseTimeNanoseconds`` is added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .births import Argument, Executed, Setting, UserFrame
from .cudagraphs import CapturedGraph, Replay
from .dataflow import Dataflow
from .facts import Cores, Flags, MeasuredPeaks, Memory, Nvml
from .generation import Generation
from .loops import Loop
from .places import Placed
from .samples import Samples
from .workers import Workers

RUN_FORMAT = 1

MANIFEST, FACTS, LOCATIONS = "manifest.json", "facts.json", "locations.json"
SOURCES, TRACE, LINES = "sources.json", "trace.json", "lines.bin"


@dataclass(frozen=True)
class DeviceFacts:
    """The device that the script used. Zeros and None where it does not apply or is not known."""

    kind: str = "cpu"  # "cuda" | "rocm" | "xpu" | "mps" | "cpu": a module each in ``device/kinds``
    name: str = ""
    count: int = 1
    capability: tuple[int, int] | None = None  # CUDA compute capability
    multiprocessors: int = 0
    memory_bytes: int = 0
    bf16: bool = False  # torch.cuda.is_bf16_supported() / CPU: the type exists


@dataclass(frozen=True)
class Request:
    """What was asked for, enough to ask for it again."""

    target: str = ""  # the script's absolute path, or the module's name
    typed: str = ""  # the script as it was typed: what sys.argv[0] shows; "" is the same as target
    module: bool = False
    argv: tuple[str, ...] = ()
    cwd: str = ""
    python: str = ""  # the interpreter's path
    launcher: tuple[str, ...] = ()  # e.g. ("torchrun", "--nproc-per-node", "2")
    environment: dict[str, str] = field(default_factory=dict)  # set on top of the server's own
    steps: int = 5
    warmup: int | None = None  # None: until step times settle
    whole_run: bool = False
    timeout_s: float | None = None
    include: tuple[str, ...] = ()  # more folders with files of the user
    nvtx: bool = False
    peaks: bool = False  # measure what the device can do, where no earlier run did
    first_line: int = 0  # of the script, a notebook's cell: measuring begins there; 0: at its first
    every: int = 0  # after the capture a few steps are timed again and again, so many steps apart; 0: never
    probe_s: float = 10.0  # for trying replacements once the script has ended; 0: none is tried
    loop: Loop | None = None  # whose turns are the steps; None: steps are found
    loop_found: bool = False  # by us: where it makes no steps any more, another is looked for


@dataclass(frozen=True)
class Manifest:
    format: int
    created_ns: int
    script: str  # absolute path of the file that ran as __main__
    argv: tuple[str, ...]
    python_version: str
    torch_version: str
    device: DeviceFacts
    request: Request
    #: "profiler" | "mark" | "replay" | "optimizer" | "backward" | "loader" | "forward" | "loop"
    #: (a turn of ``request.loop``) | "whole"
    step_source: str
    timed_ns: tuple[int, ...]  # durations of the steps timed without the profiler
    captured: tuple[tuple[int, int], ...]  # [start_ns, end_ns) of each captured step
    line_events: str  # "monitoring" | "settrace" | "none" (and then a note says why)
    roots: tuple[str, ...]  # folders with the user's files
    exit_status: int | None = None  # the script's own, when it ended by itself
    rank: int = 0
    world_size: int = 1
    notes: tuple[str, ...] = ()
    #: The capture paused to write what it had: so much later than recorded its last step really ended. All
    #: times behind a pause are moved back by its length.
    paused_ns: int = 0
    others_share: float = 0.0  # of the time while steps were timed: what other classes of steps took besides


@dataclass(frozen=True)
class Locations:
    """``locations[i] = (file index, line, function index)``; entry 0 is (-1, 0, -1)."""

    files: tuple[str, ...]
    functions: tuple[str, ...]  # qualified names, "Block.forward", "<module>"
    locations: tuple[tuple[int, int, int], ...]
    threads: tuple[int, ...]  # native thread ids; index = thread_index of the pairs
    #: (location, how often it was begun in one earlier step): lines of quick loops of plain Python, which
    #: were recorded where they begin and end only. Their shares of the loop's time are that step's.
    estimated: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Site(Placed):
    """Where an object was made, and what it was made with.

    ``kind`` and what ``facts`` holds then: "loader", "optimizer", "parallel", "tensor", "compile", "to",
    "triton", "sync", "untrained", "autocast", "grad_mode" and "framework", with a class each in
    ``wire.sites``; and "module", made by a user's line: type, bias, dtype, device, channels_last, count and
    what its constructor keeps (kernel_size…).
    """

    kind: str
    file: str
    line: int
    function: str
    facts: dict[str, Any] = field(default_factory=dict)
    uses: tuple[tuple[str, int], ...] = ()  # user lines where it was iterated, called or stepped
    frames: tuple[UserFrame, ...] = ()  # all of the user's while it was made, innermost first
    arguments: tuple[Argument, ...] = ()  # its arguments, and where each value is written


@dataclass(frozen=True)
class CompileEvent(Placed):
    """A graph break, recompilation or compiled graph that Dynamo reported."""

    kind: str  # "graph_break" | "recompile" | "compile"
    file: str
    line: int
    reason: str
    count: int = 1
    milliseconds: float = 0.0


@dataclass(frozen=True)
class CompiledKernel:
    """A call in a graph that Inductor compiled, in the order of the calls, and the user lines it was made of.

    Runs from before ``graph`` was recorded have each of Inductor's own kernels once.
    """

    name: str
    #: (file, line, function), the line of the operator itself first; empty where no line of the user's is
    #: in the stacks, as in a model made of torch's own modules.
    lines: tuple[tuple[str, int, str], ...]
    backward: bool = False
    graph: int = -1  # which of the run's compiled graphs, in the order of their compilation
    region: str = ""  # torch's number for the frame it was compiled from, such as "0/1"
    traced: bool = True  # torch says what it was made of
    double: bool = False  # Triton's, and most of its pointers to floats are to float64


@dataclass(frozen=True)
class Facts:
    sites: tuple[Site, ...] = ()
    flags: Flags = field(default_factory=Flags)
    gc_ns: tuple[tuple[int, int], ...] = ()  # collections during the captured steps
    #: In the captured steps: begin and end in ns of a thread's wait, its native id, that of who woke it
    thread_waits: tuple[tuple[int, int, int, int], ...] = ()
    step_threads: tuple[int, ...] = ()  # native ids of the threads at the ends of the captured steps
    #: Tracebacks that autograd stored under anomaly detection while steps were captured; None in older runs
    traceback_ns: tuple[tuple[int, int], ...] | None = None
    queued_ns: int | None = None  # in the captured steps: their thread was ready to run and had no processor
    gc_timed_ns: int = 0  # time of collections during the timing window
    gc_full_timed_ns: tuple[int, ...] | None = None  # of these, each full one; None in older runs
    gc_full_steps_ns: tuple[int, ...] = ()  # by timed step; empty where there was none, and in older runs
    #: Each full one of the run: the number of the step, the file and line that ran then, its ns
    gc_full: tuple[tuple[int, str, int, int], ...] = ()
    line_record_ns: float | None = None  # what one line record costs, measured right after the capture
    library_record_ns: float | None = None  # and one of a library's line, with its share of calls and returns
    op_record_ns: float | None = None  # what the profiler adds to an operator, measured as the capture ends
    launch_record_ns: float | None = None  # and, beside that, to the launch of a kernel
    small_op_ns: float | None = None  # without a device: an operator on a few numbers, not recorded
    host_step_ns: float | None = None  # of a step begun with the device idle: until the host was done with it
    host_forward_ns: float | None = None  # until it called backward
    generations: tuple[Generation, ...] = ()  # calls of transformers' ``generate``, with their forward passes
    prefill_steps: tuple[int, ...] = ()  # of the timed steps those that began with a call's first forward
    prefill_ns: int | None = None  # one of them, where none was timed
    prefill_device_ns: int | None = None  # the device's work in one, recorded after the capture
    compile_events: tuple[CompileEvent, ...] = ()
    compiled_kernels: tuple[CompiledKernel, ...] = ()
    workers: Workers | None = None  # of loaders, where there are some that were forked
    captured_graphs: tuple[CapturedGraph, ...] = ()
    replays: tuple[Replay, ...] = ()  # in order of time
    memory: Memory = field(default_factory=Memory)
    nvml: Nvml = field(default_factory=Nvml)
    cores: Cores = field(default_factory=Cores)
    peaks: MeasuredPeaks = field(default_factory=MeasuredPeaks)
    samples: Samples = field(default_factory=Samples)  # of lines, while nothing was recorded
    settings: tuple[Setting, ...] = ()  # in the order in which the script made them
    executed: Executed = field(default_factory=Executed)
    dataflow: Dataflow = field(default_factory=Dataflow)  # of the surveyed step
    losses: tuple[float, ...] = ()  # of the first steps, where the runner could see them
