"""When the other ranks of a run were exchanging, from the traces that they left in ``ranks/``.

Only that is read: a whole trace for each rank would make the report wait.
"""

from __future__ import annotations

import gzip
import mmap
import re
import zlib
from pathlib import Path

import numpy as np

from warpline import runs
from warpline.model.problem import Problem
from warpline.trace.columns import Exchanges
from warpline.wire.run import TRACE

#: Ranges on Gloo's own threads, kernels of NCCL and RCCL, as Kineto writes them.
_EVENT = re.compile(
    rb'"cat": "(?:kernel|user_annotation)",\s*"name": "(?:gloo:|ncclDevKernel|ncclKernel|rccl)[^"]*",\s*'
    rb'"pid": \d+,\s*"tid": \d+,\s*"ts": ([\d.]+),\s*"dur": ([\d.]+)'
)
_BASE = re.compile(rb'"baseTimeNanoseconds": (\d+)')


def peers(run: Path) -> tuple[Exchanges, ...]:
    """The collectives of each other rank of this machine, by its number: all that were recorded.

    () for a run of one process, and where one rank left no readable trace: the last to come may be that one.
    """
    found = []
    for folder in runs.rank_folders(run):
        try:
            found.append(_exchanges_of(runs.part(folder, TRACE)))
        except (Problem, OSError, EOFError, ValueError, zlib.error):
            return ()
    return tuple(found)


def _exchanges_of(trace: Path) -> Exchanges:
    with trace.open("rb") as file:
        if trace.suffix == ".gz":
            with gzip.open(file) as packed:
                return _exchanges(packed.read())
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return _exchanges(text)


def _exchanges(text: mmap.mmap | bytes) -> Exchanges:
    base = _BASE.search(text)
    times = np.array([match.groups() for match in _EVENT.finditer(text)], np.float64).reshape(-1, 2)
    start = np.round(times[:, 0] * 1000).astype(np.int64) + (int(base[1]) if base is not None else 0)
    by = np.argsort(start, kind="stable")
    return Exchanges(start[by], (start + np.round(times[:, 1] * 1000).astype(np.int64))[by])
