"""The arguments of a ``Site`` by its kind: the keys of ``Site.facts``, typed.

None is what is not known, and is absent from the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from .run import Site


@dataclass(frozen=True)
class Loader:
    KIND: ClassVar[str] = "loader"

    num_workers: int | None = None
    batch_size: int | None = None
    pin_memory: bool | None = None
    persistent_workers: bool | None = None
    prefetch_factor: int | None = None
    drop_last: bool | None = None
    shuffle: bool | None = None
    dataset_type: str | None = None
    dataset_length: int | None = None
    dataset_file: str | None = None  # of its ``__getitem__`` or ``__iter__``
    dataset_line: int | None = None
    #: The dataset, or what it is a Subset of: its class, its ``__getitem__``, and its attributes that are
    #: tensors of the host.
    rows_type: str | None = None
    rows_file: str | None = None
    rows_line: int | None = None
    rows_tensors: list[str] | None = None
    collate_file: str | None = None
    collate_line: int | None = None
    #: What ``next`` returned, or the object of the user's in it that torch does not pin: its class, the file
    #: of that, and the attributes that were tensors of the host in every batch and can be assigned.
    batch_type: str | None = None
    batch_file: str | None = None
    batch_tensors: list[str] | None = None
    batches_per_epoch: int | None = None
    epochs_started: int | None = None  # iterators made
    #: Loaders that these lines made one after another, each once the last was iterated.
    made: int | None = None
    in_main_ms: float | None = None  # that the main process spends in each ``next``, in the median
    in_main_busy: float | None = None  # share of that in which its thread had a processor
    in_main_beside: float | None = None  # processor time of other threads of the process, by that thread's
    #: Processor time of all threads of a child that got samples as a worker does, by that of its main one.
    worker_cores: float | None = None
    wait_ms: float | None = None  # in ``next`` and ``iter``, per step of the timing window
    starts_timed: int | None = None  # epochs that began in that window
    #: The median epoch's ``iter``, the ``next`` of its first batch, and the one that found no more.
    start_ms: float | None = None
    #: In that window, from a batch to the next one that was asked for, in the median: after epochs' first
    #: batches, and after the others.
    after_first_ms: float | None = None
    after_others_ms: float | None = None
    batches_seen: int | None = None  # in the last epoch that came to its end
    #: Where a trial got some samples several times, with other random numbers, and they were the same: what
    #: one is ("tensor"; "list" or "dict" of tensors or numbers), its size in a batch, what making it takes,
    #: and what a batch takes that is indexed from a table of such samples. All of them fit into memory.
    sample_form: str | None = None
    sample_bytes: int | None = None
    sample_ms: float | None = None
    rows_ms: float | None = None
    #: The attributes of the dataset, and of what it is a Subset of, where the above is known.
    dataset_names: list[str] | None = None


@dataclass(frozen=True)
class Optimizer:
    KIND: ClassVar[str] = "optimizer"

    type: str | None = None
    fused: bool | None = None
    foreach: bool | None = None
    capturable: bool | None = None
    parameters: int | None = None  # tensors
    groups: int | None = None  # that they are in
    elements: int | None = None
    shapes: list[list[int]] | None = None  # of the parameters: how many there are, then their sizes
    devices: list[str] | None = None
    #: How many optimizers this line made that are alive at the end, and ``shapes`` of all of them.
    made: int = 1
    all_shapes: list[list[int]] | None = None
    #: Of its groups with equal settings: those that are numbers, and ``shapes`` as above.
    settings: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class Parallel:
    KIND: ClassVar[str] = "parallel"

    type: str | None = None  # "DataParallel" | "DistributedDataParallel" | "FSDP"
    find_unused_parameters: bool | None = None


@dataclass(frozen=True)
class HostTensor:
    """Filled on the host by ``op``, and then moved."""

    KIND: ClassVar[str] = "tensor"

    device: str | None = None
    to: str | None = None
    op: str | None = None
    bytes: float | None = None
    calls: int | None = None


@dataclass(frozen=True)
class Compile:
    KIND: ClassVar[str] = "compile"

    mode: str | None = None
    fullgraph: bool | None = None
    dynamic: bool | None = None
    backend: str | None = None


@dataclass(frozen=True)
class Move:
    """A copy from the host to the device."""

    KIND: ClassVar[str] = "to"

    bytes: float | None = None
    non_blocking: bool | None = None
    pinned: bool | None = None
    calls: int | None = None
    wait_ms: float | None = None  # in the calls that wait, in a step that ran without the profiler
    #: Of copies from pageable memory: all of the memory that they copy parts of, what the host had free after
    #: that step, and what the process had then.
    whole_bytes: float | None = None
    free_bytes: float | None = None
    resident_bytes: float | None = None


@dataclass(frozen=True)
class Triton:
    """A line that launches a Triton kernel: calls, and bytes of the tensors given to it, in one step; of each
    parameter that was given a whole number, the smallest. ``floats``: the parameters that were given another
    number; None in older runs."""

    KIND: ClassVar[str] = "triton"

    kernel: str | None = None
    calls: int | None = None
    bytes: float | None = None
    numbers: dict[str, int] | None = None
    floats: list[str] | None = None


@dataclass(frozen=True)
class Sync:
    """A call that needs a value of the device on the host, in the surveyed step."""

    KIND: ClassVar[str] = "sync"

    what: str | None = None  # "item", "tolist", "numpy", "cpu", "bool", "print", "nonzero", "mask", …
    calls: int | None = None
    wait_ms: float | None = None  # in the calls, in a step that ran without the profiler
    direct: bool | None = None  # the user's line calls it; else torch's or a library's code below that line


#: Times that torch.compile compiles one code before it leaves it as it is
#: (``torch._dynamo.config.recompile_limit``).
RECOMPILE_LIMIT = 8


@dataclass(frozen=True)
class Module:
    """A module of that type; only embeddings have the sizes."""

    KIND: ClassVar[str] = "module"

    type: str | None = None
    training: bool | None = None  # in the recorded steps
    bias: bool | None = None
    count: int | None = None  # made by that line, with the same frames; None: one
    variants: int | None = None  # of its class, for torch.compile (``births/variants.py``); None: few
    num_embeddings: int | None = None
    embedding_dim: int | None = None


@dataclass(frozen=True)
class Untrained:
    """A module with parameters that ask for gradients and are ``Dataflow.unheld``, and none that an optimizer
    has, but for parts that were added to it later: the call of its ``eval()``, else where it was made, copied
    or got from a library."""

    KIND: ClassVar[str] = "untrained"

    type: str | None = None  # the name of its class
    weights: int | None = None  # such parameters
    evaluated: bool | None = None
    shared: bool | None = None  # the same place makes modules that are trained, or copies of it may be
    held: list[str] | None = None  # by variables of the script, and attributes of modules: "Net.body"


@dataclass(frozen=True)
class Autocast:
    """An autocast context that a line of the user's makes, as it was the first time."""

    KIND: ClassVar[str] = "autocast"

    device: str | None = None  # "cuda" | "cpu" | …
    dtype: str | None = None  # "bfloat16" | "float16"
    enabled: bool | None = None


@dataclass(frozen=True)
class GradMode:
    """The same for what switches gradients off, also as a decorator."""

    KIND: ClassVar[str] = "grad_mode"

    type: str | None = None  # "no_grad" | "set_grad_enabled" | "inference_mode"
    mode: bool | None = None  # what it was given; no_grad takes nothing


@dataclass(frozen=True)
class Framework:
    """A trainer or the like, constructed by the user's line; see ``wire.frameworks``."""

    KIND: ClassVar[str] = "framework"

    type: str | None = None
    construction: str | None = None  # key of a Construction
    parameters: list[str] | None = None  # names that the installed version takes
    values: dict[str, Any] | None = None  # of those that a setting of ours refers to
    changed: dict[str, Any] | None = None  # of these, what was set as an attribute afterwards
    parts: dict[str, list[str]] | None = None  # modules of what was made, the largest first, and methods
    weights_bytes: int | None = None  # of the modules of the object whose method is called


F = TypeVar(
    "F", Loader, Optimizer, Parallel, HostTensor, Compile, Move, Triton, Sync, Module, Untrained, Autocast,
    GradMode, Framework,
)  # fmt: skip


def facts_of(kind: type[F], site: Site) -> F:
    """The facts of a site of that kind; keys that the kind has no field for are left out."""
    known = {one.name for one in fields(kind)}
    return kind(**{name: value for name, value in site.facts.items() if name in known})


def longest_epoch(sites: Iterable[Site]) -> int | None:
    """Batches per epoch of the longest loader that the script iterated; None without one."""
    loaders = (facts_of(Loader, site) for site in sites if site.kind == Loader.KIND)
    known = (one.batches_per_epoch or 0 for one in loaders if one.epochs_started)
    return max(known, default=0) or None
