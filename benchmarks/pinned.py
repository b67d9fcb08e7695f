"""Jobs side by side, each with processor cores of its own, so that none slows another down."""

from __future__ import annotations

import argparse
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cores",
        type=cores,
        metavar="LIST",
        help="cores to use, such as 0-7,9 (all that this process may use)",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="scripts at a time; the cores are divided among them"
    )


def cores(text: str) -> list[int]:
    """An argparse type: the cores of a list such as ``0-7,9``."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of cores such as 0-7,9")
        found.update(range(int(first), int(last or first) + 1))
    allowed = os.sched_getaffinity(0)
    if not found or not found <= allowed:
        raise argparse.ArgumentTypeError(f"{text!r}: this process may use the cores {sorted(allowed)}")
    return sorted(found)


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], options: argparse.Namespace
) -> Iterator[Result]:
    """The results in the order of the items. The processes that ``work`` starts stay on its job's cores.

    On Linux an affinity belongs to a thread, and what the thread starts inherits it.
    """
    own = options.cores or sorted(os.sched_getaffinity(0))
    jobs = max(1, min(options.jobs, len(own)))
    shares: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    each = len(own) // jobs
    for at in range(jobs):
        shares.put(own[at * each : (at + 1) * each])
    with ThreadPoolExecutor(jobs, initializer=lambda: os.sched_setaffinity(0, shares.get())) as threads:
        yield from threads.map(work, items)
