"""``timing.json``: the result of a run in which steps are only timed."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "timing.json"


@dataclass(frozen=True)
class Timing:
    steps_ns: tuple[int, ...]  # durations of the steps of the timing window, the device idle at both ends
    losses: tuple[float, ...] = ()  # of the first backward passes of the run, warm-up included
    loss_not_finite_at: int | None = None  # number of the first loss that is; ``losses`` ends before it
    workers: int = 0  # processes that it had started and that were alive at the end: a loader's, as a rule
    peak_bytes: int = 0  # torch's peak of the device, without one the process's resident peak
    #: (number of a step in which an epoch began, batches in it): a loader was iterated again.
    epochs: tuple[tuple[int, int], ...] = ()
    step_source: str = ""
    device: str = "cpu"
