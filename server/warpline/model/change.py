"""The change that a fix makes in the captured step, as plain data.

A rule names a change; the simulation (:mod:`warpline.simulate`) replays the step with it. Places are
``(file, line)`` of the *hot* lines, where the ops, copies, syncs or waits are recorded, and not of the edit
site. An empty ``places`` means the whole step. Rules do not depend on how a change is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpline.wire.precision import Precision

Places = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LoaderWorkers:
    """Batches are prefetched by ``workers`` processes.

    ``places``: lines that wait for the next batch. ``persistent``: workers are kept after an epoch.
    ``batch_ms``: time for one process to load one batch, if a rule knows it. None: the recorded wait for a
    batch if there are no workers now, else the time between two batches times the number of workers.
    ``waiting``: loading mostly waits, as for a disk, so that workers need no cores of their own.
    ``cores``: that each of them keeps busy: a part of one where it also waits for something else, several
    where libraries that it calls have threads of their own.
    ``stalled_ms``: what loading waits for cores that other processes have. The gain is that of a step without
    these waits.
    """

    workers: int
    places: Places = ()
    present: int = 0
    persistent: bool = True
    batch_ms: float | None = None
    waiting: bool = False
    stalled_ms: float = 0.0
    cores: float = 1


@dataclass(frozen=True, slots=True)
class KeptSamples:
    """All samples were made before the steps: the main process takes each batch from memory, in ``batch_ms``.

    ``places``: lines that wait for the next batch, or make it.
    """

    batch_ms: float
    places: Places = ()


@dataclass(frozen=True, slots=True)
class OverlapCopies:
    """Host-to-device copies at ``places`` are asynchronous: pinned source, ``non_blocking=True``.

    ``rate_factor``: how many times faster a pinned copy runs than the pageable one.
    """

    places: Places = ()
    rate_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class RemoveSyncs:
    """The host no longer waits for the device at ``places``. ``keep``: share of the waits that remain
    (1/N)."""

    places: Places = ()
    keep: float = 0.0


@dataclass(frozen=True, slots=True)
class Fuse:
    """The kernels at ``places`` (forward and backward) become ``kernels`` kernels each time the lines run;
    matrix products do not change.

    ``bytes``: bytes that the fused kernels read and write per step; their time is ``bytes`` over the device's
    bandwidth. None: a fused kernel takes as long as the longest of the kernels that it replaces.
    ``keep``: share of the fused work's time that remains, if a rule knows it. ``shares``: then the share of
    each place's time that is fused (a line may do other work as well). ``keep_host``: as ``keep``, for host
    time, if it differs. ``keep_between``: as ``keep_host``, for the host's time between operators, if that
    differs.
    """

    places: Places
    kernels: int = 1
    bytes: float | None = None
    keep: float | None = None
    shares: tuple[float, ...] = ()
    keep_host: float | None = None
    keep_between: float | None = None


#: How an option begins that says how often code is called, where the calls may differ.
ABOUT = "about "


@dataclass(frozen=True, slots=True)
class Replace:
    """The computation at ``places`` is replaced by another one, which can be tried without the script.

    ``by``: a kind of ``capture/runner/probing``, or "rows": calls that get more of them. ``options``: words
    that this kind accepts. ``shares``: as for :class:`Fuse`. ``otherwise``: the change that is simulated if
    the replacement was not tried.
    """

    by: str
    places: Places
    otherwise: Change
    options: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()


#: An operator of the trace: its name, and its inputs' shapes and strides.
Operator = tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]


@dataclass(frozen=True, slots=True)
class MatmulRate:
    """Matrix products (and convolutions, attention) at ``places`` run in another precision.

    ``elementwise``: autocast, under which memory-bound kernels between the products also move fewer bytes.
    ``weights``: the weights are kept in that precision, so nothing is cast. ``factor``: the speed-up of the
    products; None: from the device's rates. ``tried``: for products that were tried in that precision, the
    new time as a share of the present one. ``between``: of lines whose tensors are known, the share of the
    bytes that their kernels would move, products left out; of other lines an assumed one holds.
    """

    precision: Precision
    places: Places = ()
    factor: float | None = None
    elementwise: bool = False
    tried: tuple[tuple[Operator, float], ...] = ()
    weights: bool = False
    between: tuple[tuple[tuple[str, int], float], ...] = ()


@dataclass(frozen=True, slots=True)
class PadProducts:
    """Matrix products at ``places`` with a dimension of ``size`` take ``left`` of their time, since it is
    padded. Only in ``precision``: nothing changes where no other change brings them to that.

    ``assumed``: as for :class:`Scale`.
    """

    size: int
    precision: Precision
    left: float
    places: Places = ()
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """Images at ``places`` are in channels_last: there are no layout conversions for the tensor cores, and
    cuDNN's batch norms run at the device's bandwidth, since the channels of a pixel are contiguous.
    """

    places: Places = ()


@dataclass(frozen=True, slots=True)
class RemoveLaunches:
    """The code at ``places`` is compiled (``fuse``: as Inductor does), or replayed as a CUDA graph.

    Compiled, runs of memory-bound kernels are merged, and the host calls libraries and launches the remaining
    kernels one by one. ``keep``: at least this share of the host time remains.
    """

    places: Places = ()
    fuse: bool = True
    keep: float = 0.0


@dataclass(frozen=True, slots=True)
class CompiledCalls:
    """The code at ``places`` is compiled and called ``calls`` times per step. Each call costs host time (its
    guards are checked), and so does its backward pass. ``graphs``: it is replayed as a CUDA graph; there each
    of the network's ``parameters`` adds to a call."""

    places: Places
    calls: float
    parameters: int = 0
    graphs: bool = False


@dataclass(frozen=True, slots=True)
class FuseOptimizer:
    """The optimizer's kernels at ``places`` become a few multi-tensor ones.

    ``bytes``: bytes that they read and write per step (parameters, gradients, state); None if unknown.
    """

    places: Places
    bytes: float | None = None


@dataclass(frozen=True, slots=True)
class NoAnomalyDetection:
    """Autograd stores no traceback for its nodes, and does not look for NaN in gradients, at ``places``.

    ``checked``: the share of the gradients that it still checks, all of them when the last kernel was
    queued."""

    places: Places = ()
    checked: float = 0.0


@dataclass(frozen=True, slots=True)
class LargerBatch:
    """A step has ``factor`` times as many samples. The result is the time per present batch. ``epoch``: the
    present batches that have all samples, None where that is not known."""

    factor: float
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class JoinedBatches:
    """One backward pass has all samples of ``factor`` present ones, whose gradients were added up: its loss
    is the sum of theirs. Other changes have the time."""

    factor: int


@dataclass(frozen=True, slots=True)
class Scale:
    """Time at ``places`` is multiplied by a factor (0 removes the line), one for host and one for device
    time.

    For cases without a change of their own: a tuned algorithm, work moved out of the step (garbage
    collection, ``empty_cache``, printing), a faster function for samples.
    ``at_most``: the gain is at most this, and how large it is is unknown: a bound, not a prediction.
    ``assumed``: the factors come from ``model/costs.json`` and not from this run: an estimate.
    ``apart``: several such changes take different parts of the time at the same places, so together they save
    what each of them saves alone.
    """

    places: Places
    device: float = 1.0
    host: float = 1.0
    at_most: bool = False
    assumed: bool = False
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Together:
    """Several changes in one step, applied in this order."""

    changes: tuple[Change, ...]


Change = (
    LoaderWorkers
    | KeptSamples
    | OverlapCopies
    | RemoveSyncs
    | Fuse
    | Replace
    | MatmulRate
    | PadProducts
    | ChannelsLast
    | RemoveLaunches
    | CompiledCalls
    | FuseOptimizer
    | NoAnomalyDetection
    | LargerBatch
    | JoinedBatches
    | Scale
    | Together
)
