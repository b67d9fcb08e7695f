"""The report, field for field as ``contract.md`` (format 1) has it.

All times are means over the captured steps in milliseconds unless the name carries another unit.
Lines are 1-based, columns 0-based in code points, paths absolute. Nothing may be added here
without a new ``FORMAT``; what only our own views need belongs to :mod:`warpline.model.profile`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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


#: The profiler makes steps longer. Where they were this much shorter under it, others were captured, or the
#: timed ones waited for something else (another process on the device).
QUICKER = 0.9


@dataclass(frozen=True, slots=True)
class Steps:
    captured: int
    step_ms: float
    profiled_step_ms: float
    slowdown: float
    device_busy_percent: float
    source: str = ""  # what marks a step: ``Manifest.step_source``; "" in reports made before it was told
    loop: str = ""  # "PATH:LINE" of the loop whose turns are the steps, where ``source`` is "loop"


@dataclass(frozen=True, slots=True)
class Composition:
    """Where the step's time goes; the parts add up to ``Steps.step_ms``.

    While the device works, a moment belongs to what it works on, of several things to the one on the critical
    path: ``communication_ms`` (collectives), ``optimizer_ms`` (queued in ``Optimizer.step`` or
    ``zero_grad``), ``backward_ms`` (recomputed forwards included) or ``forward_ms`` (all else, copies
    included). While it has nothing to do, the moment belongs to ``loader_ms`` (the main thread is in a
    DataLoader), ``host_ms`` (it runs Python or queues work) or ``idle_ms`` (it waits in a synchronizing call,
    or nothing is known of it).
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
    """A part of a line's time that a library's line took, with what that line called in torch.

    ``module``: the path in the model, "" for the model itself, None outside a module. What no library's line
    took is at the user's own line.
    """

    module: str | None
    file: str
    line: int
    function: str
    step_ms: float
    device_ms: float
    calls: float
    sync_ms: float = 0.0  # in which the host waited for the device
    text: str = ""  # what the line says
    forward_ms: float = 0.0  # parts of ``device_ms``, as of the user's line
    backward_ms: float = 0.0
    idle_ms: float = 0.0  # part of ``step_ms`` in which the device had nothing to do


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
    kept_bytes: float = 0.0  # per step, allocated here and not freed while the captured steps ran
    #: Per step, of the allocator into the driver (cudaMalloc, cudaFree, cudaHostAlloc), and host time in
    #: them.
    allocator_calls: float = 0.0
    allocator_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the user's. Both times are parts of the step; totals of functions that call each other
    overlap."""

    file: str
    function: str
    step_ms: float  # of its own lines
    total_ms: float  # with the functions that it calls


@dataclass(frozen=True, slots=True)
class Unattributed:
    device_ms: float
    step_ms: float


@dataclass(frozen=True, slots=True)
class Attributed:
    device_percent: float
    step_percent: float


@dataclass(frozen=True, slots=True)
class SourceLine:
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured number behind a finding; every number in a message is one of these."""

    metric: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """``low`` to ``high``: where nine of ten measured gains lie. Set when a report is read, as what was
    measured since says how wide that is."""

    step_ms: float
    speedup: float
    basis: Basis
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """``speedup`` is plain step time over changed step time; ``low`` and ``high`` bound it (95 %)."""

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
class Finding:
    """``file``/``line`` is the edit site, ``cause`` the hot line (they may be the same)."""

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


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One fix, after those before it. ``speedup`` is what it gains then; ``limit`` what bounds the step after
    it. The finding may gain nothing alone, and then is in no list but this one."""

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
    """The fixes in the order to make them. ``step_ms`` and ``limit`` are those of the step as it is."""

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
    workers: Workers | None = None  # the lines of loader workers, which work beside the step
    composition: Composition | None = None  # None in reports made before there was one
    #: By descending total. () in reports made before there were any, and of traces made elsewhere.
    functions: tuple[Function, ...] = ()
