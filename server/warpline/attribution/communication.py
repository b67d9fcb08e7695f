"""Exchanges between ranks: what of them nothing hides, and what of that is waiting for another rank."""

from __future__ import annotations

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.scene import Scene
from warpline.attribution.timeline import union
from warpline.trace.columns import COMMUNICATION, KERNEL, Exchanges, Floats, Ints, Trace

Spans = tuple[Ints, Ints]

#: Gloo exchanges on threads of its own, in ranges of these names.
GLOO = "gloo:"


def communication_totals(scene: Scene, accounted: Account) -> dict[str, float]:
    """``exposed_communication_ms``, and ``collective_wait_ms`` where other ranks were recorded as well.

    Milliseconds per step in which an exchange ran and no computation; {} when nothing was exchanged.
    """
    own = exchanges(scene.trace).begun(*scene.trace.window_ns)
    if not len(own):
        return {}
    hiding = _computation(scene)
    scale = 1 / 1e6 / scene.trace.steps if scene.trace.on_gpu else accounted.host_scale
    totals = {"exposed_communication_ms": _uncovered((own.start_ns, own.end_ns), hiding) * scale}
    waited = _waited(own, scene.trace.peers)
    if waited is not None:
        until = own.start_ns + waited
        totals["collective_wait_ms"] = _uncovered((own.start_ns, until), hiding) * scale
    return {name: min(value, scene.step_ms) for name, value in totals.items()}


def exchanges(trace: Trace) -> Exchanges:
    """This rank's collectives: kernels on a GPU, else Gloo's ranges."""
    if trace.on_gpu:
        rows = np.flatnonzero(trace.kernels.kind == COMMUNICATION)
        return Exchanges(trace.kernels.start_ns[rows], trace.kernels.end_ns[rows])
    named = np.array([name.startswith(GLOO) for name in trace.names] or [False])
    rows = np.flatnonzero(named[trace.marks.name])
    rows = rows[np.argsort(trace.marks.start_ns[rows], kind="stable")]
    return Exchanges(trace.marks.start_ns[rows], trace.marks.end_ns[rows])


def _waited(own: Exchanges, peers: tuple[Exchanges, ...]) -> Ints | None:
    """For each collective, how much longer this rank was in it than the last one to come.

    All leave a collective together, so no clocks are compared. None when the ranks' collectives cannot
    be matched one to one.
    """
    if not peers or any(len(peer) != len(own) for peer in peers):
        return None
    length = own.end_ns - own.start_ns
    shortest = np.minimum.reduce([length, *(peer.end_ns - peer.start_ns for peer in peers)])
    waited: Ints = length - shortest
    return waited


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
