"""A profile: the cost of each source line, and the data that rules and views need.

Attribution makes it from a trace; the contract's :class:`warpline.model.report.Report` is made from it. Times
are means per captured step in milliseconds, scaled to the unprofiled step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warpline.model.kernel import KernelInside
from warpline.model.ranks import LateLine
from warpline.model.report import (
    Attributed,
    Composition,
    Function,
    Inside,
    Phase,
    Roofline,
    Steps,
    Tokens,
    Unattributed,
)
from warpline.wire.places import Placed
from warpline.wire.run import Facts, Manifest


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel (or copy) of a line: all its launches of the same name, phase and grid."""

    name: str
    phase: Phase
    count: float  # launches per step
    device_ms: float
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    occupancy_percent: float | None = None  # torch's estimate
    bytes: float | None = None  # of copies, per step
    kind: str = "kernel"  # "kernel" | "copy" | "set" | "communication"
    tensor_cores: bool | None = None  # None: the name does not say


#: Element types that tensor cores multiply, by their names in a trace (Ampere and later).
TENSOR_CORE_DTYPES = {
    "c10::Half": "float16", "c10::BFloat16": "bfloat16", "float": "tf32", "c10::Float8_e4m3fn": "float8",
    "c10::Float8_e5m2": "float8", "signed char": "int8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Op:
    """One dispatcher call of a line: all calls of the same name, phase and shapes."""

    name: str
    phase: Phase
    count: float
    device_ms: float  # of the kernels it launched itself; on a CPU its exclusive time
    cpu_ms: float  # inclusive host time
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()  # "float", "c10::BFloat16", "Scalar", …, as the trace names them
    strides: tuple[tuple[int, ...], ...] = ()
    values: tuple[str, ...] = ()  # of convolutions: scalar arguments as text, "" for tensors
    launches: float = 0.0
    outer: bool = True  # called by the line itself, not by another op
    flops: float | None = None
    bytes: float | None = None

    @property
    def tensor_core_dtype(self) -> str | None:
        """Eligibility for tensor cores: the dtype (``"bfloat16"``, ...) if they support it, ``"tf32"`` for
        float32, which is rounded to TF32 first. None for ops without matrix arithmetic and for other dtypes.
        """
        if self.flops is None:
            return None
        kinds = (TENSOR_CORE_DTYPES[dtype] for dtype in self.dtypes if dtype in TENSOR_CORE_DTYPES)
        return next(kinds, None)


#: Operators that are kept of a line, the costliest first; those of one name, phase and shapes are one.
MOST_OPS_A_LINE = 1000


@dataclass(frozen=True, slots=True)
class LineCost(Placed):
    file: str
    line: int
    function: str
    step_ms: float = 0.0  # exclusive; lines plus unattributed make the step
    device_ms: float = 0.0
    forward_ms: float = 0.0
    backward_ms: float = 0.0
    recompute_ms: float = 0.0
    idle_ms: float = 0.0
    cpu_ms: float = 0.0
    sync_ms: float = 0.0
    syncs: float = 0.0  # calls that wait for the device, per step
    loader_ms: float = 0.0  # part of idle/cpu: the host waited for the next batch here, or loaded it
    gc_ms: float = 0.0
    traceback_ms: float = 0.0  # part of cpu: anomaly detection stored tracebacks
    check_ms: float = 0.0  # part of cpu: it looked for NaN in gradients
    copy_ms: float = 0.0  # device time of copies, part of device_ms
    communication_ms: float = 0.0  # device time of collectives, part of device_ms
    calls: float = 0.0
    launches: float = 0.0
    memory_bytes: int = 0  # held at the step's memory peak
    kept_bytes: float = 0.0  # allocated here per step and not freed during the capture
    allocator_calls: float = 0.0  # cudaMalloc, cudaFree, cudaHostAlloc and the like, per step
    allocator_ms: float = 0.0  # host time in them
    stalled_ms: float = 0.0  # host time of copies in its memory beyond what they need (attribution/stalled)
    on_host_ms: float = 0.0  # host time of operators on tensors in its memory, beside a device
    nodes: float = 0.0  # nodes added to autograd's graph, per step
    unused_nodes: float = 0.0  # of these, nodes that no backward pass visits
    #: The same with the user's functions that the line calls, and their backward pass in ms per step.
    total_nodes: float = 0.0
    total_unused_nodes: float = 0.0
    total_backward_ms: float = 0.0
    called: tuple[tuple[str, str], ...] = ()  # those functions: file and name
    kernels: tuple[Kernel, ...] = ()
    ops: tuple[Op, ...] = ()
    roofline: Roofline | None = None
    group: tuple[int, ...] = ()  # indices into Profile.groups: fused kernels this line is part of
    inside: tuple[Inside, ...] = ()  # the line's time by library line, longest first
    tokens: Tokens | None = None  # where the line calls ``generate``

    def __hash__(self) -> int:
        """Hash the place alone: a line may have a thousand operators."""
        return hash(self.place)


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that run as one kernel."""

    kernel: str
    lines: tuple[tuple[str, int], ...]
    device_ms: float
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Crossing(Placed):
    """A graph break at which tensors go through memory from compiled code to compiled code; per step."""

    file: str
    line: int
    bytes: float  # of the tensors; each was written and read
    saved_ms: float  # without that, about
    device_ms: float  # of the code on both sides, and of its backward pass
    regions: tuple[str, ...] = ()  # torch's numbers of that code, as in CompiledKernel
    also: tuple[tuple[str, int], ...] = ()  # breaks between the same code, before this one: all have to go


@dataclass(frozen=True, slots=True)
class Mark:
    """A range the user named with record_function or NVTX."""

    name: str
    count: float
    wall_ms: float
    share: float  # of the step, 0..1
    device_ms: float
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    manifest: Manifest
    facts: Facts
    steps: Steps
    lines: tuple[LineCost, ...]  # by descending step_ms
    unattributed: Unattributed
    attributed: Attributed
    sources: dict[str, str]  # path -> text as it was when the script ran
    groups: tuple[Group, ...] = ()
    marks: tuple[Mark, ...] = ()
    inside: tuple[KernelInside, ...] = ()  # kernels profiled in detail, with the text that ran
    unattributed_kernels: tuple[Kernel, ...] = ()  # kernels without a line
    unattributed_ops: tuple[Op, ...] = ()
    notes: tuple[str, ...] = ()
    composition: Composition | None = None
    functions: tuple[Function, ...] = ()  # by descending total; () if the calls are unknown
    totals: dict[str, float] = field(default_factory=dict)  # busy_ms, idle_ms, sync_ms, loader_ms, …
    crossings: tuple[Crossing, ...] = ()
    late_line: LateLine | None = None  # of the rank that ``totals["late_rank"]`` names, where one line tells
