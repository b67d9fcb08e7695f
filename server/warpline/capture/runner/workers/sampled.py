"""Samples the lines of a worker, without a trace function.

A trace function slows plain Python many times over, and by a different factor on each line, so no single cost
per event is right. Recorded batches therefore say which lines run and how often. If there are samples, taken
during the main process's sampling window, they say how long the lines take.
"""

from __future__ import annotations

from time import perf_counter_ns
from types import CodeType
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Tuple

from ..sampler.frames import Frames

if TYPE_CHECKING:
    from ..lines.userfiles import UserFiles

#: Least number of samples in user lines, over all workers; with fewer, the recorded times are used.
FEWEST = 200
#: Least number of samples of a line; with fewer, its time is at most the recorded one.
ENOUGH = 10


class Sampled:
    """Samples a worker's lines from the start of one batch to the start of another, waits included."""

    def __init__(self) -> None:
        self.sampler: Optional[Frames] = None
        self.failed = self.over = False
        self.batches = self.took_ns = 0

    def batch(self, wanted: bool) -> None:
        """A batch begins; ``wanted``: the main process samples now."""
        if self.sampler is None:
            if wanted and not self.failed:
                self._begin()
        elif wanted and not self.over:
            self.batches += 1
        elif not self.over:
            self.batches += 1
            self.over = True
            self.took_ns = perf_counter_ns() - self.began
            self.sampler.stop()

    def _begin(self) -> None:
        try:
            self.sampler = Frames()
        except Exception:  # no permission, another Python: the recorded times are what there is
            self.failed = True
            return
        self.began = perf_counter_ns()
        self.sampler.go()

    def told(self, user_files: UserFiles, codes: Iterable[CodeType]) -> Optional[Dict[str, Any]]:
        """``codes``: those of the user's that ran, without the code inside of them."""
        if self.sampler is None or not self.over:
            return None
        try:
            found = self.sampler.found(user_files, with_inner(codes))
        except OSError:
            return None
        return {"batches": self.batches, "ns": self.took_ns, **found}


def with_inner(codes: Iterable[CodeType]) -> List[CodeType]:
    """``codes``, and comprehensions and functions inside of them."""
    found: Dict[int, CodeType] = {}
    waiting = list(codes)
    while waiting:
        code = waiting.pop()
        if id(code) not in found:
            found[id(code)] = code
            waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return list(found.values())


def times(told: List[Dict[str, Any]]) -> Optional[Tuple[Dict[Tuple[str, int], float], float]]:
    """``(samples, sample_ns)``: samples per batch of each line, over all workers, and the ns that one sample
    stands for. None if there are too few."""
    one_each = [one["sampled"] for one in told if one.get("sampled")]
    batches = sum(one["batches"] for one in one_each)
    total = sum(one["total"] for one in one_each)
    counts: Dict[Tuple[str, int], float] = {}
    for one in one_each:
        for file, line, count in one["lines"]:
            counts[file, line] = counts.get((file, line), 0) + count
    if sum(counts.values()) < FEWEST or not batches or not total:
        return None
    return counts, sum(one["ns"] for one in one_each) / total / batches


def line_ns(recorded_ns: float, count: float, sample_ns: float) -> float:
    """The time of a line for a batch, in ns. With few samples at most what was recorded."""
    if count >= ENOUGH:
        return count * sample_ns
    return min(recorded_ns, (count + 1) * sample_ns)
