"""The report, field for field as in ``contract.md`` (format 1).

All times are means over the captured steps in milliseconds, unless the name has another unit. Lines are
1-based, columns 0-based in code points, paths absolute. Nothing may be added here without a new ``FORMAT``;
data for our own views belongs to :mod:`warpline.model.profile`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from warpline.wire.places import Placed
from warpline.wire.workers import Workers

FORMAT = 1

Phase = Literal["forward", "backward", "recompute"]
Severity = Literal["error", "warning", "information", "hint"]
Applicability = Literal["safe", "unsafe", "display"]
Basis = Literal["probed", "simulated", "bound", "estimate"]
Resource = Literal["loader", "host", "launches", "memory", "compute", "communication"]
Bound = Literal["compute", "memory", "launch"]


@dataclass(frozen=True, slots=True)
class Device:
    kind: str  # one of ``warpline.devices.kinds()``
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Environment:
    python: str
    torch: str
    device: Device


#: The profiler makes steps longer. If captured steps took less than this share of the timed ones, they did
#: other work, or the timed ones waited for something else (another process on the device).
QUICKER = 0.9
#: Evidence, a share of the step: what it waits for cores that other processes have. A prediction beside it is
#: for a step without these waits.
CROWDED = "waits for cores"


@dataclass(frozen=True, slots=True)
class Steps:
    captured: int
    step_ms: float
    profiled_step_ms: float
    slowdown: float
    device_busy_percent: float
    source: str = ""  # what marks a step: ``Manifest.step_source``; "" in older reports
    loop: str = ""  # "PATH:LINE" of the loop whose iterations are the steps, if ``source`` is "loop"


@dataclass(frozen=True, slots=True)
class Composition:
    """Where the step's time goes; the parts add up to ``Steps.step_ms``.

    While the device works, a moment belongs to the kernel that runs (with several, the one on the critical
    path): ``communication_ms`` (collectives), ``optimizer_ms`` (queued in ``Optimizer.step`` or
    ``zero_grad``), ``backward_ms`` (recomputed forwards included) or ``forward_ms`` (all other work, copies
    included). While the device is idle, the moment belongs to what the main thread does: ``loader_ms`` (it is
    in a DataLoader), ``host_ms`` (it runs Python or queues work) or ``idle_ms`` (it waits in a synchronizing
    call, or this is unknown).
    """

    loader_ms: float
    host_ms: float
    forward_ms: float
    backward_ms: float
    optimizer_ms: float
    communication_ms: float
    idle_ms: float


@dataclass(frozen=True, slots=True)
class KernelUse:
    name: str
    phase: Phase
    count: float
    device_ms: float


@dataclass(frozen=True, slots=True)
class OpUse:
    name: str
    phase: Phase
    count: float
    device_ms: float
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Roofline:
    flops: float
    bytes: float
    percent_of_peak: float
    bound: Bound


@dataclass(frozen=True, slots=True)
class Inside:
    """The part of a line's time that a library line took, the torch calls of that line included.

    ``module``: the path in the model, "" for the model itself, None outside a module. Time outside of library
    lines is at the user's own line. ``part``: outside a module, what ran there (``attribution/named.py``),
    such as ``optimizer/AdamW.step``; "" where only the function is known.
    """

    module: str | None
    file: str
    line: int
    function: str
    step_ms: float
    device_ms: float
    calls: float
    sync_ms: float = 0.0  # time in which the host waited for the device
    text: str = ""  # the line's source text
    forward_ms: float = 0.0  # forward, backward, ...: parts of ``device_ms``, as for the user's line
    backward_ms: float = 0.0
    idle_ms: float = 0.0  # part of ``step_ms`` in which the device was idle
    part: str = ""
    prefill_ms: float = 0.0  # parts of ``step_ms`` in forward passes of ``generate``, as in ``Tokens``
    decode_ms: float = 0.0
    prefill_device_ms: float = 0.0  # the same parts of ``device_ms``
    decode_device_ms: float = 0.0
    recompute_ms: float = 0.0  # part of ``device_ms`` in forward passes that run again


@dataclass(frozen=True, slots=True)
class Passes:
    """Forward passes of ``generate`` of one kind. ``pass_...``: of one of them.

    ``pass_device_ms`` and ``pass_idle_ms`` are None where no such pass was recorded.
    """

    count: float  # per step
    step_ms: float  # of all of them, what they add to the step
    pass_ms: float
    pass_device_ms: float | None
    pass_idle_ms: float | None  # in which the device was idle
    pass_host_ms: float | None  # how long the host was in the pass, without the profiler; None where unknown


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the calls of ``generate`` at a line do. ``prefill``: the first pass of each call, and the
    encoder's before it; ``decode``: the later ones. Each makes one token of every sequence.

    The four times (two of ``Passes``, two here) add up to the line with the user's functions that it calls.
    """

    prefill: Passes
    decode: Passes
    other_ms: float  # what ``generate`` does beside them: choosing tokens, preparing inputs
    outside_ms: float  # of the line, outside of the calls


@dataclass(frozen=True, slots=True)
class Line:
    file: str
    line: int
    function: str
    step_ms: float
    device_ms: float
    forward_ms: float
    backward_ms: float
    recompute_ms: float
    idle_ms: float
    cpu_ms: float
    sync_ms: float
    calls: float
    launches: float
    memory_bytes: int
    kernels: tuple[KernelUse, ...] = ()
    ops: tuple[OpUse, ...] = ()
    roofline: Roofline | None = None
    inside: tuple[Inside, ...] = ()
    kept_bytes: float = 0.0  # per step, allocated here and not freed during the captured steps
    #: Calls of the allocator into the driver (cudaMalloc, cudaFree, cudaHostAlloc) per step, and their host
    #: time.
    allocator_calls: float = 0.0
    allocator_ms: float = 0.0
    tokens: Tokens | None = None  # where the line calls ``generate``


@dataclass(frozen=True, slots=True)
class Function:
    """One of the user's functions. Both times are per step. The totals of a caller and of a function that it
    calls overlap."""

    file: str
    function: str
    step_ms: float  # its own lines
    total_ms: float  # its own lines and the functions that it calls


@dataclass(frozen=True, slots=True)
class Unattributed:
    device_ms: float
    step_ms: float


@dataclass(frozen=True, slots=True)
class Attributed:
    device_percent: float
    step_percent: float


@dataclass(frozen=True, slots=True)
class SourceLine(Placed):
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured number of a finding. Every number in its message is one of these."""

    metric: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """A predicted step. ``low`` to ``high``: interval that holds nine of ten measured gains. It is computed
    when a report is read, since later measurements change its width."""

    step_ms: float
    speedup: float
    basis: Basis
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """``speedup``: plain step time over changed step time; ``low`` to ``high``: its 95 % interval."""

    speedup: float
    low: float
    high: float
    loss_drift: float | None
    memory_ratio: float | None


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``start`` (inclusive) to ``end`` (exclusive), each ``(line, column)``, by ``text``."""

    file: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    title: str
    applicability: Applicability
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding(Placed):
    """A problem at a line. ``file``/``line``: the edit site. ``cause``: the hot line (it may be the same).
    ``also``: other places with the same problem, which this one is told and fixed together with."""

    id: str
    rule: str
    severity: Severity
    file: str
    line: int
    cause: SourceLine
    message: str
    evidence: tuple[Evidence, ...]
    predicted: Predicted | None = None
    measured: Measured | None = None
    fixes: tuple[Fix, ...] = ()
    also: tuple[SourceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One fix of a plan, made after those before it. ``speedup``: its gain then. ``limit``: the resource that
    bounds the step after it. A finding without a gain of its own appears only here."""

    finding: str
    rule: str
    file: str
    line: int
    title: str
    step_ms: float
    speedup: float
    limit: Resource


@dataclass(frozen=True, slots=True)
class Plan:
    """The fixes, in the order to make them. ``step_ms`` and ``limit``: of the present step."""

    step_ms: float
    limit: Resource
    steps: tuple[PlanStep, ...]
    floor_ms: float


@dataclass(frozen=True, slots=True)
class Report:
    format: int
    script: str
    argv: tuple[str, ...]
    environment: Environment
    steps: Steps
    lines: tuple[Line, ...]
    unattributed: Unattributed
    attributed: Attributed
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    plan: Plan | None = None
    workers: Workers | None = None  # the lines of loader workers, which run in parallel to the step
    composition: Composition | None = None  # None in older reports
    #: By descending total. () in older reports, and for traces of other tools.
    functions: tuple[Function, ...] = ()
