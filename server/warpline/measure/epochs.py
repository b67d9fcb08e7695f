"""The cost of starting an epoch, shared among its steps.

Between two epochs a loader may start its workers again, fill their queues and read what it had read before; a
script may validate or save. A window holds few of these moments and the middle of many slices none, so they
are taken out of the steps and counted by themselves: what a step in which an epoch began took beyond a usual
one, over the batches of the epoch (or over the steps of the window for each of them, if those are more:
another loader than that of the steps, one for validation say, may have begun).
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, median

from warpline.model.profile import Profile
from warpline.wire.sites import Loader, facts_of
from warpline.wire.timing import Timing


def apart(timing: Timing) -> tuple[Timing, float]:
    """``(the timing with usual steps in place of those, ns that they add to each step)``.

    0 where no epoch began in the window, or nothing but epochs did.
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
    """Steps ``begin`` to ``end`` of ``timing``, with the epochs that began in them."""
    epochs = tuple((at - begin, batches) for at, batches in timing.epochs if begin <= at < end)
    return replace(timing, steps_ns=timing.steps_ns[begin:end], epochs=epochs)


def batches(profile: Profile) -> int | None:
    """Batches in an epoch of the longest loader that the script iterated. None where there is none."""
    loaders = (facts_of(Loader, site) for site in profile.facts.sites if site.kind == Loader.KIND)
    known = [one.batches_per_epoch or 0 for one in loaders if one.epochs_started]
    return max(known, default=0) or None
