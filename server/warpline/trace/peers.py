"""The collectives of a run's other ranks, and their hosts' own time per step, from the traces in ``ranks/``.

Nothing else is read from these traces: decoding a whole trace for each rank would delay the report.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from warpline import packed, runs
from warpline.model.problem import Problem
from warpline.trace.alone import alone_ns
from warpline.trace.columns import Exchanges, Ints, Peer
from warpline.trace.events import Interned
from warpline.trace.names import Names
from warpline.wire.run import TRACE

Captured = Sequence[tuple[int, int]]

#: Gloo's ranges and the kernels of NCCL and RCCL, in Kineto's form.
_EVENT = re.compile(
    rb'"cat": "(?:kernel|user_annotation)",\s*"name": "(?:gloo:|ncclDevKernel|ncclKernel|rccl)[^"]*",\s*'
    rb'"pid": \d+,\s*"tid": \d+,\s*"ts": ([\d.]+),\s*"dur": ([\d.]+)'
)
_CALL = re.compile(
    rb'"cat": "\w+_(?:runtime|driver)",\s*"name": "([^"]*)",\s*'
    rb'"pid": \d+,\s*"tid": \d+,\s*"ts": ([\d.]+),\s*"dur": ([\d.]+)'
)
_BASE = re.compile(rb'"baseTimeNanoseconds": (\d+)')

_UNREADABLE: tuple[type[Exception], ...] = (Problem, OSError, ValueError, OverflowError, *packed.ERRORS)


def peers(run: Path) -> tuple[Peer, ...]:
    """The other ranks on this machine, by number, with all their recorded collectives.

    () for a run of one process, and if one rank left no readable trace, since that one may be the late rank.
    """
    found = []
    for folder in runs.rank_folders(run):
        try:
            captured = runs.manifest(folder).captured
            found.append(_peer(runs.part(folder, TRACE), captured))
        except _UNREADABLE:
            return ()
    return tuple(found)


def _peer(trace: Path, captured: Captured) -> Peer:
    with trace.open("rb") as file:
        if trace.suffix == ".gz":
            return _read(packed.unpacked(file.read()), captured)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return _read(text, captured)


def _read(text: mmap.mmap | bytes, captured: Captured) -> Peer:
    base = _BASE.search(text)
    base_ns = int(base[1]) if base is not None else 0
    start, end = _spans([match.groups() for match in _EVENT.finditer(text)], base_ns)
    by = np.argsort(start, kind="stable")
    calls = [match.groups() for match in _CALL.finditer(text)]
    names = Interned()
    name = names.all([call[0].decode(errors="replace") for call in calls])
    host_ns = alone_ns(Names(names.index), name, *_spans([call[1:] for call in calls], base_ns), captured)
    step_ns = (captured[-1][1] - captured[0][0]) / len(captured) if captured else 0.0
    return Peer(Exchanges(start[by], end[by]), step_ns, host_ns)


def _spans(times: Sequence[Sequence[bytes]], base_ns: int) -> tuple[Ints, Ints]:
    """Start and end in ns of unix time, from (start, length) as in the trace."""
    us = np.array(times, np.float64).reshape(-1, 2)
    start = np.round(us[:, 0] * 1000).astype(np.int64) + base_ns
    return start, start + np.round(us[:, 1] * 1000).astype(np.int64)
