"""On a CPU: lines that call ``generate`` take what their calls took while steps were timed.

Captured calls may make other numbers of tokens than timed ones, as where texts end early. With several such
lines in a step, their captured times would divide it wrongly.
"""

from __future__ import annotations

import numpy as np

from warpline.attribution.scene import Scene
from warpline.attribution.timeline import overlay, union
from warpline.trace.columns import Floats, Ints
from warpline.wire.generation import CALL, Generation

#: A line is brought to its calls if they are at least this share of it, and of them as much is the line's
#: own: neither a trainer that generates now and then, nor a model in the user's files. Chosen.
MOST = 0.95


def brought_to_calls(scene: Scene, factor: Floats, seen: Floats) -> Floats:
    """``factor``, of the host time ``seen`` of each line, by line number; changed for lines that call
    ``generate``, so that these have their share of the timed steps. The others keep theirs among each
    other."""
    facts = scene.trace.facts
    timed = sum(scene.trace.manifest.timed_ns) - sum(facts.gc_full_steps_ns)
    shares = {}
    for one in facts.generations:
        found = _own(scene, one) if timed and one.calls_ns else None
        if found is not None and seen[found[0]] > 0:
            shares[found[0]] = one.calls_ns / timed / found[1]
    of_others = float((seen * factor).sum() - sum(seen[at] * factor[at] for at in shares))
    left = 1.0 - sum(shares.values())
    if not shares or left <= 0 or of_others <= 0:
        return factor
    brought: Floats = factor.copy()
    for at, share in shares.items():
        brought[at] = share * of_others / left / seen[at]
    return brought


def spans_of(one: Generation, *kinds: int) -> tuple[Ints, Ints]:
    """Disjoint sorted spans of these kinds, in ns."""
    found = np.array([span[:2] for span in one.spans if span[2] in kinds], np.int64).reshape(-1, 2)
    return union(found[:, 0], found[:, 1])


def number_of(scene: Scene, one: Generation) -> int:
    """The number of the line that calls ``generate``; 0 where it has none."""
    table = scene.table
    places = zip(table.file, table.line, table.function, strict=True)
    return next((at for at, place in enumerate(places) if place == (one.file, one.line, one.function)), 0)


def _own(scene: Scene, one: Generation) -> tuple[int, float] | None:
    """The number of the line, and the share of it that the calls are. None where the two are not much the
    same."""
    pieces, number = scene.lines[scene.trace.main], number_of(scene, one)
    called, _ = overlay(pieces, *spans_of(one, CALL))
    whole = float(pieces.length_ns[pieces.line == number].sum())
    within, all_ns = float(called.length_ns[called.line == number].sum()), float(called.length_ns.sum())
    if not number or within <= 0 or within < MOST * whole or within < MOST * all_ns:
        return None
    return number, within / whole
