"""Measures the profiler's cost per operator and per kernel launch, on the script's machine; and what an
operator costs a CPU that computes almost nothing.

The slowdown of the captured steps does not show this cost: a step that waits for the device hides it. No
constant fits either: with CUPTI, on the virtual machines that were seen, it is ten times that of a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from ..device import kinds

PASSES = 7  # the median of these counts
SIZE = 8  # elements
CALLS = 60  # of each operator per pass: 0.3 ms; all in all 1,300 events after those of the steps


class OperatorCost:
    """Create before the profiler starts, call ``watched()`` once while it runs, then ``facts()``."""

    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch
        self.tensor: Any = None
        self.plain: tuple[float, float] | None = None
        self.seen: tuple[float, float] | None = None
        try:
            with torch.no_grad():
                self.tensor = torch.zeros(SIZE, device=kinds.used(torch).torch_name)
                self.plain = self._measured()
        except Exception:  # out of memory, a mode of the script's that takes part in every operator
            self.tensor = None

    def watched(self) -> None:
        """Measure an operator under the profiler; compared with the same outside it."""
        if self.tensor is None:
            return
        try:
            with self.torch.no_grad():
                self.seen = self._measured()
        except Exception:
            self.seen = None

    def facts(self) -> dict[str, float]:
        """``op_record_ns`` and ``launch_record_ns`` (0 without a device), and without one ``small_op_ns``;
        empty where not measured."""
        if self.plain is None or self.seen is None:
            return {}
        alone, launching = (max(0.0, seen - plain) for seen, plain in zip(self.seen, self.plain))
        found = {"op_record_ns": alone, "launch_record_ns": max(0.0, launching - alone)}
        return found if self.tensor.device.type != "cpu" else {**found, "small_op_ns": self.plain[1]}

    def _measured(self) -> tuple[float, float]:
        """Nanoseconds of an operator that launches nothing (a view) and of one that launches a kernel."""
        tensor = self.tensor
        if tensor.device.type != "cpu":
            kinds.used(self.torch).synchronize()  # otherwise a full launch queue would be measured
        return _median_ns(partial(tensor.view, SIZE)), _median_ns(tensor.neg_)


def _median_ns(operator: Callable[[], object]) -> float:
    found = []
    for _ in range(PASSES):
        begin = perf_counter_ns()
        for _ in range(CALLS):
            operator()
        found.append((perf_counter_ns() - begin) / CALLS)
    return sorted(found)[PASSES // 2]
