"""The change that a fix makes in the captured step, as plain data.

A rule names a change; the simulation (:mod:`warpline.simulate`) replays the step with it. Places
are ``(file, line)`` of the *hot* lines (where the ops, copies, syncs or waits are seen), not of the
edit site. An empty ``places`` means the whole step. Rules know nothing of how it is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpline.wire.precision import Precision

Places = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LoaderWorkers:
    """Batches are made by ``workers`` processes, prefetched, instead of as they are now.

    ``places``: lines that wait for the next batch. ``persistent``: workers outlive an epoch.
    ``batch_ms``: what one batch costs one process, where a rule knows it (else it is the wait
    itself without workers, and wait + step over the present workers with them).
    """

    workers: int
    places: Places = ()
    present: int = 0
    persistent: bool = True
    batch_ms: float | None = None


@dataclass(frozen=True, slots=True)
class OverlapCopies:
    """Host-to-device copies at ``places`` are asynchronous: pinned source, ``non_blocking=True``.

    ``rate_factor``: how many times faster a pinned copy runs than the pageable one.
    """

    places: Places = ()
    rate_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class RemoveSyncs:
    """The host no longer waits for the device at ``places``. ``keep``: share that stays (1/N)."""

    places: Places = ()
    keep: float = 0.0


@dataclass(frozen=True, slots=True)
class Fuse:
    """What runs at ``places`` (both phases) becomes ``kernels`` kernels each time; products stay.

    ``bytes``: what the fused kernels read and write a step; their time is then ``bytes`` over the
    device's bandwidth. None: the widest of the replaced kernels stands for the fused one.
    Where a rule knows more, ``keep`` is the share of the fused work's time that stays, and
    ``shares`` the part of each place's time that is fused (a line may do other things as well).
    ``keep_host``: the same of the host's time, where that is another share than of the device's.
    """

    places: Places
    kernels: int = 1
    bytes: float | None = None
    keep: float | None = None
    shares: tuple[float, ...] = ()
    keep_host: float | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """What ``places`` compute is done in another way, which can be tried without the script.

    ``by``: a kind of ``capture/runner/probing``; ``options``: words that it knows. ``shares``: as for
    :class:`Fuse`. ``otherwise``: the change as it is simulated where nothing was tried.
    """

    by: str
    places: Places
    otherwise: Change
    options: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()


#: An operator as the trace has it: its name, and its inputs' shapes and strides.
Operator = tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]


@dataclass(frozen=True, slots=True)
class MatmulRate:
    """Matrix products (and convolutions, attention) at ``places`` run in another precision.

    ``elementwise``: under autocast, memory-bound kernels between them move half the bytes too.
    ``weights``: the weights are kept in that precision, so nothing is copied to it.
    ``factor``: the speed-up of the products; None: from the device's rates. ``tried``: the share of its time
    that is left of a product that was tried in that precision.
    """

    precision: Precision
    places: Places = ()
    factor: float | None = None
    elementwise: bool = False
    tried: tuple[tuple[Operator, float], ...] = ()
    weights: bool = False


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """Images at ``places`` are laid out channels last: nothing turns them for the tensor cores and back, and
    cuDNN's batch norms, whose channels then lie side by side, move at the device's bandwidth.
    """

    places: Places = ()


@dataclass(frozen=True, slots=True)
class RemoveLaunches:
    """The host queues ``places`` as one launch (``torch.compile``, CUDA graph).

    ``fuse``: runs of memory-bound kernels are merged as Inductor would, and what is left is launched
    one by one; ``keep``: share of the host time that stays (with ``fuse`` the least that does).
    """

    places: Places = ()
    fuse: bool = True
    keep: float = 0.05


@dataclass(frozen=True, slots=True)
class CompiledCalls:
    """What ``places`` do is compiled and called ``calls`` times a step: each call costs the host something,
    as its guards are checked, and its backward costs as much again."""

    places: Places
    calls: float


@dataclass(frozen=True, slots=True)
class FuseOptimizer:
    """The optimizer's kernels at ``places`` become a few multi-tensor ones.

    ``bytes``: what they read and write a step (parameters, gradients, state), None when unknown.
    """

    places: Places
    bytes: float | None = None


@dataclass(frozen=True, slots=True)
class LargerBatch:
    """``factor`` times the samples a step: reported as time per present batch."""

    factor: float


@dataclass(frozen=True, slots=True)
class Scale:
    """Time at ``places`` becomes ``factor`` times what it is (0 removes the line).

    For what the other changes do not say: a tuned algorithm, work moved out of the step (garbage
    collection, ``empty_cache``, printing), a faster sample function.
    ``at_most``: no more than this is gained, and nothing says how much: a bound instead of a prediction.
    ``assumed``: the factors are of ``model/costs.json`` and not of this run: an estimate.
    """

    places: Places
    device: float = 1.0
    host: float = 1.0
    at_most: bool = False
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Together:
    """Several changes in one step, applied in this order."""

    changes: tuple[Change, ...]


Change = (
    LoaderWorkers
    | OverlapCopies
    | RemoveSyncs
    | Fuse
    | Replace
    | MatmulRate
    | ChannelsLast
    | RemoveLaunches
    | CompiledCalls
    | FuseOptimizer
    | LargerBatch
    | Scale
    | Together
)
