"""The timed steps without a chance collection of all garbage.

A single full collection in the timing window does not say how often they come: in a program that had none in
800 steps, our own objects brought one about. So it belongs to no step. Several have a rate, and are part of
what a step takes.
"""

from __future__ import annotations

from statistics import fmean, median

from warpline.wire.run import Facts, Manifest


def steps_ns(manifest: Manifest, facts: Facts) -> tuple[float, ...]:
    """The timed steps, without a collection that was the only full one in them, as far as its step took
    longer than the median step: a device may have had work meanwhile."""
    timed = manifest.timed_ns
    collected = [(at, spent) for at, spent in enumerate(facts.gc_full_steps_ns[: len(timed)]) if spent]
    if len(collected) != 1 or len(facts.gc_full_timed_ns or ()) > 1:
        return tuple(map(float, timed))
    at, spent = collected[0]
    extra = max(0.0, timed[at] - median(timed))
    return (*timed[:at], timed[at] - min(spent, extra), *timed[at + 1 :])


def mean_ns(manifest: Manifest, facts: Facts) -> float:
    """Their mean; 0 where none was timed."""
    found = steps_ns(manifest, facts)
    return fmean(found) if found else 0.0


def left_out_ns(manifest: Manifest, facts: Facts) -> float:
    """What the collection took that is left out."""
    return sum(manifest.timed_ns) - sum(steps_ns(manifest, facts))
