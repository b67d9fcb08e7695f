"""The loader's queue: the time to load a batch, and how often one is ready with k workers.

Workers load batches in turn, and each holds ``prefetch_factor`` (2) of them. If one process takes the time c
for a batch, k workers deliver one every c / k, as long as each has a core.
"""

from __future__ import annotations

import numpy as np

from warpline.model import costs
from warpline.model.change import LoaderWorkers
from warpline.simulate.replay import Feed
from warpline.simulate.timeline import LOADER, Timeline
from warpline.wire.run import Facts
from warpline.wire.sites import Loader, facts_of

PREFETCH = 2
#: Time that the main process needs to take a batch from a worker (unpickle it, map the shared memory, wake
#: up): at least this time, and at least this share of the time to load the batch.
TAKE_NS, TAKE_SHARE = costs.value("batch-take-ns"), costs.value("batch-take-share")
#: If the time in the loader is below this share of the step, it is the cost of taking batches, not a wait.
WAITS = costs.bound("loader-waits")


def waited_ns(timeline: Timeline) -> tuple[float, int]:
    """``(time in the loader, batches taken)`` in the captured window."""
    inside = timeline.kind == LOADER
    begins = inside & ~np.concatenate([[False], inside[:-1]])
    return float(timeline.host_ns[inside].sum()), int(begins.sum())


def present_feed(timeline: Timeline, facts: Facts, step_ns: float, captured_ns: float) -> Feed | None:
    """The feed of the recorded run. None if the main process loads the batches (that work is in the trace).

    If the step waits for the workers, they set its pace: a batch is ready every ``step_ns``. Otherwise the
    time in the loader is the cost of taking a batch: where the timed steps spent hardly any there (a profiled
    host takes longer), or a worker's time for a batch says that the workers keep up. It is no more than the
    timed steps spent there. ``captured_ns``: length of a captured step, waits for the device included (the
    timeline's host time no longer has them).
    """
    spent, batches = waited_ns(timeline)
    loaders = [one for site in facts.sites if site.kind == Loader.KIND and (one := facts_of(Loader, site))]
    # The loader that the steps take from has the most workers.
    workers = max((one.num_workers or 0 for one in loaders), default=0)
    if not workers or not batches:
        return None
    per_step, taken = batches / timeline.steps, spent / batches
    waits = spent > WAITS * captured_ns * timeline.steps
    timed = [one.wait_ms for one in loaders if one.num_workers and one.wait_ms is not None]
    waited = sum(timed) * 1e6 / per_step if timed else spent / batches
    known = facts.workers if len([one for one in loaders if one.num_workers]) == 1 else None
    if timed:
        # A few captured steps may begin an epoch, or find workers that the profiled host kept waiting. They
        # may also be so slow that workers keep up with them: a worker's time for a batch tells then.
        waits = (waits or known is not None) and sum(timed) * 1e6 > WAITS * step_ns
        taken = min(taken, waited)
    if known is not None:
        waits = waits and known.batch_ms >= workers * max(0.0, step_ns / per_step - waited) / 1e6
    if waits:
        return Feed(step_ns / per_step, PREFETCH * workers, min(TAKE_NS, taken))
    return Feed(0.0, PREFETCH * workers, taken)


def changed_feed(
    timeline: Timeline, change: LoaderWorkers, host_scale: float, present: Feed | None
) -> Feed | None:
    """The feed with ``change.workers``. None if the main process loads the batches."""
    spent, batches = waited_ns(timeline)
    if change.workers <= 0 or not batches:
        return None
    if present is None:
        # The main process loads them: the time is in the trace, and is scaled as all host time.
        stalled = change.stalled_ms * 1e6 * timeline.steps / batches
        cost = max(0.0, spent / batches * host_scale - stalled)
    elif change.batch_ms is not None:
        cost = change.batch_ms * 1e6
    else:
        cost = present.period_ns * max(1, change.present)
    take = max(TAKE_NS, TAKE_SHARE * cost)
    return Feed(cost / change.workers, PREFETCH * change.workers, take, cost * change.cores)
