"""Communication between ranks: exposed time, and the part of it spent waiting for another rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.scene import Scene
from warpline.attribution.timeline import union
from warpline.model.ranks import LATE_RANK_PERCENT
from warpline.trace.alone import host_alone_ns
from warpline.trace.columns import COMMUNICATION, KERNEL, Exchanges, Floats, Ints, Trace, take

Spans = tuple[Ints, Ints]

#: Gloo's collectives run on its own threads, in ranges whose names begin with this.
GLOO = "gloo:"


def communication_totals(scene: Scene, accounted: Account) -> dict[str, float]:
    """``exposed_communication_ms``, and ``collective_wait_ms`` if other ranks were recorded as well.

    Milliseconds per step in which a collective ran and no computation did; {} if there was no collective.
    ``late_rank_ms`` and ``late_rank`` (the rank's number on this machine) are present if one rank was the
    last to enter the collectives in every step: see :func:`_late`.
    """
    every, step = exchanges_by_step(scene.trace)
    own = every.at(step >= 0)
    if not len(own):
        return {}
    hiding = _computation(scene)
    scale = 1 / 1e6 / scene.trace.steps if scene.trace.on_gpu else accounted.host_scale
    totals = {"exposed_communication_ms": _uncovered((own.start_ns, own.end_ns), hiding) * scale}
    waits = _waits(every, tuple(peer.exchanges for peer in scene.trace.peers))
    waits = None if waits is None else waits[:, step >= 0]
    if waits is not None:
        until = own.start_ns + waits[0]
        totals["collective_wait_ms"] = _uncovered((own.start_ns, until), hiding) * scale
    totals = {name: min(value, scene.step_ms) for name, value in totals.items()}
    late = None if waits is None else _late(own, step[step >= 0], waits, scene)
    if late is not None:
        rank, late_ms = late
        # A wait that overlaps with this rank's own computation costs nothing.
        most = totals["collective_wait_ms"] if rank else scene.step_ms
        totals |= {"late_rank": float(rank), "late_rank_ms": min(late_ms, most)}
    return totals


def exchanges(trace: Trace) -> Exchanges:
    """This rank's collectives: its communication kernels on a GPU, else Gloo's ranges."""
    return exchanges_by_step(trace)[0]


def exchanges_by_step(trace: Trace) -> tuple[Exchanges, Ints]:
    """:func:`exchanges`, and the captured step in which each was queued; -1: in none of them.

    The step in which it ran would not do: each rank's host runs ahead of its device by a different time, so
    ranks could not be compared step by step.
    """
    if trace.on_gpu:
        rows = np.flatnonzero(trace.kernels.kind == COMMUNICATION)
        own = Exchanges(trace.kernels.start_ns[rows], trace.kernels.end_ns[rows])
        launch = trace.kernels.launch[rows]
        queued = np.where(launch >= 0, take(trace.host.start_ns, launch, 0), own.start_ns)
    else:
        rows = np.flatnonzero(trace.names.mask(GLOO)[trace.marks.name])
        rows = rows[np.argsort(trace.marks.start_ns[rows], kind="stable")]
        own = Exchanges(trace.marks.start_ns[rows], trace.marks.end_ns[rows])
        queued = own.start_ns
    captured = trace.manifest.captured
    step: Ints = np.searchsorted([begin for begin, _ in captured], queued, side="right") - 1
    return own, np.where(queued < (captured[-1][1] if captured else 0), step, -1)


def _waits(own: Exchanges, peers: tuple[Exchanges, ...]) -> Ints | None:
    """Waits in ns, shape (ranks, collectives), this rank first: how much longer each rank was in a collective
    than the last rank to enter it.

    All ranks leave a collective together, so their clocks need not be compared. None if the collectives of
    the ranks cannot be matched one to one.
    """
    if not peers or any(len(peer) != len(own) for peer in peers):
        return None
    length = np.stack([one.end_ns - one.start_ns for one in (own, *peers)])
    waits: Ints = length - length.min(axis=0)
    return waits


def late_rank(waits: Floats) -> tuple[int, Floats] | None:
    """The rank that the others waited for in every step, and how long they waited in each step.

    The waits are in milliseconds: the mean over the other ranks, minus the rank's own wait. None if a
    different rank is last in different steps, which is noise.

    Args:
        waits: shape (ranks, steps), in milliseconds: how much longer each rank was in its collectives than
            the last one to enter them
    """
    rank = int(waits.sum(axis=1).argmin())
    if (waits.argmin(axis=0) != rank).any():
        return None
    return rank, np.delete(waits, rank, axis=0).mean(axis=0) - waits[rank]


def pace_ns(own: Exchanges, step: Ints) -> float:
    """Mean time in ns between the ends of the last collectives of two consecutive steps; 0 for fewer than two
    steps. It is the same on all ranks, since they leave a collective together."""
    ends = [int(own.end_ns[step == number].max()) for number in np.unique(step[step >= 0]).tolist()]
    return (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else 0.0


def most_late_ms(late_step_ns: float, pace_ns: float, hosts_ns: Sequence[float | None]) -> float:
    """Upper bound in ms of what a late rank adds to the step.

    This is the step (the late rank's, or :func:`pace_ns`) minus the time that the slowest of the other ranks'
    hosts needs by itself (``hosts_ns``; ``trace.alone``). The device of a rank whose host is ahead waits that
    long in every collective, even for a rank that is just as fast. Infinite if one of the hosts is unknown.
    """
    known = [one for one in hosts_ns if one is not None]
    if len(known) < len(hosts_ns):
        return np.inf
    return (max(late_step_ns, pace_ns) - max(known, default=0.0)) / 1e6


def _late(own: Exchanges, step: Ints, waits: Ints, scene: Scene) -> tuple[int, float] | None:
    """The late rank and its milliseconds per step (:func:`late_rank`).

    None in three cases:

    - In some step the rank is late by less than :data:`LATE_RANK_PERCENT` of the step. With few ranks and
      steps, one may be the last in all of them by chance.
    - The other ranks would be as slow without it (:func:`most_late_ms`).
    - The profiler made the steps longer by as much: the rank may be late only because it is recorded.
    """
    trace = scene.trace
    captured = trace.manifest.captured
    of_step = [waits[:, step == number].sum(axis=1) for number in range(len(captured))]
    found = late_rank(np.stack(of_step, axis=1) / 1e6)
    if found is None:
        return None
    rank, late_ms = found
    recorded_ms = float(np.mean([end - begin for begin, end in captured])) / 1e6
    most_ms = np.inf
    if trace.on_gpu:
        hosts = [host_alone_ns(trace), *(peer.host_ns for peer in trace.peers)]
        late_step_ns = trace.peers[rank - 1].step_ns if rank else recorded_ms * 1e6
        most_ms = most_late_ms(late_step_ns, pace_ns(own, step), hosts[:rank] + hosts[rank + 1 :])
    enough = min(float(late_ms.min()), most_ms) * 100 >= LATE_RANK_PERCENT * recorded_ms
    mean_ms = min(float(late_ms.mean()), most_ms)
    return (rank, mean_ms) if enough and mean_ms > recorded_ms - scene.step_ms else None


def _computation(scene: Scene) -> Spans:
    kernels = scene.trace.kernels
    if scene.trace.on_gpu:
        rows = kernels.kind == KERNEL
        return union(kernels.start_ns[rows], kernels.end_ns[rows])
    parts = [pieces.take(pieces.working) for pieces in scene.lines]
    return union(
        np.concatenate([part.start_ns for part in parts]), np.concatenate([part.end_ns for part in parts])
    )


def _uncovered(spans: Spans, cover: Spans) -> float:
    """Nanoseconds of ``spans`` outside of the disjoint ``cover``."""
    both = union(np.concatenate([spans[0], cover[0]]), np.concatenate([spans[1], cover[1]]))
    lengths: list[Floats] = [(end - start).astype(np.float64) for start, end in (both, cover)]
    return float(lengths[0].sum() - lengths[1].sum())
