"""Where the tables of ranks are made: in processes of this machine, or where Dask's workers are.

Both call ``table_of`` for each rank and get its table back, so the result does not depend on where it ran.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from warpline.model.problem import Problem
from warpline.ranks.reduce import RankTable, table_of
from warpline.wire.processors import cores

CONNECT = "30s"  # how long a scheduler may take to answer, and a first worker to come


def reduced(paths: Sequence[Path], dask: str = "", workers: int | None = None) -> list[RankTable]:
    """The table of each of ``paths``, in their order.

    ``dask``: the address of a scheduler with workers that see the same paths; "": ``workers`` processes here
    (as many as there are cores). Raises Problem.
    """
    if dask:
        return _on_dask(paths, dask)
    count = min(len(paths), workers or cores())
    if count < 2:
        return [table_of(path) for path in paths]
    try:
        with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
            return list(pool.map(table_of, paths))
    except BrokenProcessPool:
        raise Problem("a process that read a rank ended, perhaps for lack of memory", 1) from None


def _on_dask(paths: Sequence[Path], address: str) -> list[RankTable]:
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise Problem("--dask needs Dask: pip install '.[dask]' in a clone of Warpline") from None
    try:
        with Client(address, timeout=CONNECT, set_as_default=False) as client:  # type: ignore[no-untyped-call]  # untyped
            client.wait_for_workers(1, CONNECT)  # without one, the results would never come
            futures = client.map(table_of, [path.absolute() for path in paths], pure=False)
            found: list[RankTable] = client.gather(futures)
            return found
    except (OSError, TimeoutError, asyncio.TimeoutError, ValueError, KilledWorker) as error:
        raise Problem(f"cannot use Dask at {address}: {error}") from None
