"""The cost of starting an epoch, divided among its steps.

Between two epochs a loader may restart its workers, fill their queues and read the data again; a script may
validate or save. A window has few such steps, and the median over slices ignores them. So they are separated
from the others. The cost of an epoch's start is the time of the step in which it began, minus a usual step.
It is divided by the number of batches of the epoch, or by the number of steps per epoch start in the window
if that is larger (a different loader, such as one for validation, may have started).
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, median

from warpline.wire.timing import Timing


def apart(timing: Timing) -> tuple[Timing, float]:
    """``(timing with usual steps in place of those in which an epoch began, ns per step that the starts
    add)``.

    The second is 0 if no epoch began in the window, or if one began in every step.
    """
    began = {at: batches for at, batches in timing.epochs if batches > 0 and at < len(timing.steps_ns)}
    usual = [step for at, step in enumerate(timing.steps_ns) if at not in began]
    if not began or not usual:
        return timing, 0.0
    middle = median(usual)
    extra = fmean(timing.steps_ns[at] - middle for at in began)
    steps = tuple(int(middle) if at in began else step for at, step in enumerate(timing.steps_ns))
    apart_by = max(fmean(began.values()), len(timing.steps_ns) / len(began))
    return replace(timing, steps_ns=steps), max(0.0, extra) / apart_by


def part(timing: Timing, begin: int, end: int) -> Timing:
    """Steps ``begin`` to ``end`` (exclusive) of ``timing``, with the epochs that began in them."""
    epochs = tuple((at - begin, batches) for at, batches in timing.epochs if begin <= at < end)
    return replace(timing, steps_ns=timing.steps_ns[begin:end], epochs=epochs)
