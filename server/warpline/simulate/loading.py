"""The loader's queue: what a batch costs to make, and how often one is ready with k workers.

Workers load batches in turn and hold ``prefetch_factor`` (2) each; so with a batch that costs one
process c, k of them deliver one every c / k, as long as there is a core for each.
"""

from __future__ import annotations

import numpy as np

from warpline.model import costs
from warpline.model.change import LoaderWorkers
from warpline.simulate.replay import Feed
from warpline.simulate.timeline import LOADER, Timeline

PREFETCH = 2
#: What a batch that another process made still costs the main one: unpickling, mapping the shared
#: memory, waking up. At least this, or this share of making it.
TAKE_NS, TAKE_SHARE = costs.value("batch-take-ns"), costs.value("batch-take-share")
#: A wait below this share of the step is the price of taking a batch and not a wait for it.
WAITS = costs.bound("loader-waits")


def waited_ns(timeline: Timeline) -> tuple[float, int]:
    """``(time in the loader, batches taken)`` in the captured window."""
    inside = timeline.kind == LOADER
    begins = inside & ~np.concatenate([[False], inside[:-1]])
    return float(timeline.host_ns[inside].sum()), int(begins.sum())


def present_feed(timeline: Timeline, workers: int, step_ns: float, captured_ns: float) -> Feed | None:
    """How batches come now; None when the main process makes them itself (its work is in the trace).

    Workers that keep the step waiting set its pace, so a batch is ready every ``step_ns``. Otherwise the time
    in the loader is what taking a batch costs there. ``captured_ns`` is the length of a captured step, with
    its waits for the device, which the timeline's host time no longer has.
    """
    spent, batches = waited_ns(timeline)
    if not workers or not batches:
        return None
    per_step, taken = batches / timeline.steps, spent / batches
    if spent > WAITS * captured_ns * timeline.steps:
        return Feed(step_ns / per_step, PREFETCH * workers, min(TAKE_NS, taken))
    return Feed(0.0, PREFETCH * workers, taken)


def changed_feed(
    timeline: Timeline, change: LoaderWorkers, host_scale: float, present: Feed | None
) -> Feed | None:
    """How batches would come with ``change.workers``; None when the main process makes them."""
    spent, batches = waited_ns(timeline)
    if change.workers <= 0 or not batches:
        return None
    if present is None:
        # Seen in the trace, on the same scale as everything else.
        cost = spent / batches * host_scale
    elif change.batch_ms is not None:
        cost = change.batch_ms * 1e6
    else:
        cost = present.period_ns * max(1, change.present)
    take = max(TAKE_NS, TAKE_SHARE * cost)
    return Feed(cost / change.workers, PREFETCH * change.workers, take, cost)
