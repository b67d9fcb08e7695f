"""Findings of one rule in one file that gain too little each, and enough together: one finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from warpline.diagnosis.gate import within_evidence
from warpline.model.change import Change, Together
from warpline.model.report import Evidence, Finding, Fix, Predicted, SourceLine
from warpline.rulekit.message import message, ms

#: Gains that a replay of several changes can foresee.
_REPLAYED = ("simulated", "probed")


def told_together(
    small: Iterable[Finding],
    changes: dict[str, Change],
    step_ms: float,
    least: float,
    simulated: Callable[[str, Change], Predicted | None],
) -> dict[str, Finding | None]:
    """What of ``small`` gains enough together, by id: one finding for several of one rule in one file, and
    None for those that it tells of. ``changes`` gets what all of them change.

    ``least``: percent of the step that is enough. ``simulated(rule, change)``: the step after it.
    """
    found: dict[str, Finding | None] = {}
    for some in _candidates(small, changes):
        change = Together(tuple(changes[one.id] for one in some))
        after = simulated(some[0].rule, change)
        one = _joint(some, after, step_ms, least) if after is not None else None
        if one is not None:
            found |= dict.fromkeys(other.id for other in some)
            found[one.id], changes[one.id] = one, change
    return found


def together(some: Sequence[Sequence[Fix]]) -> tuple[Fix, ...]:
    """The first fix of each as one; none where one of them has no edits, or two edit the same text."""
    firsts = [fixes[0] for fixes in some if fixes and fixes[0].edits]
    edits = dict.fromkeys(edit for fix in firsts for edit in fix.edits)  # several add the same import
    ordered = sorted(edits, key=lambda edit: (edit.file, edit.start, edit.end))
    overlap = any(a.file == b.file and a.end > b.start for a, b in pairwise(ordered))
    displayed = any(fix.applicability == "display" for fix in firsts)
    if len(firsts) < len(some) or overlap or displayed:
        return ()
    safe = all(fix.applicability == "safe" for fix in firsts)
    return (Fix(f"{firsts[0].title}, at all of them", "safe" if safe else "unsafe", tuple(edits)),)


def _places(change: Change) -> set[tuple[str, int]]:
    if isinstance(change, Together):
        return {place for one in change.changes for place in _places(one)}
    return set(getattr(change, "places", ()))


def _candidates(small: Iterable[Finding], changes: Mapping[str, Change]) -> Iterator[list[Finding]]:
    """Two findings or more of one rule in one file, that with the largest gain first. No line is changed by
    two of them: a replay would make both changes there."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for one in small:
        if one.predicted is not None and one.predicted.basis in _REPLAYED:
            found.setdefault((one.rule, one.file), []).append(one)
    for some in found.values():
        kept: list[Finding] = []
        taken: set[tuple[str, int]] = set()
        for one in sorted(some, key=lambda one: (one.predicted.step_ms if one.predicted else 0, one.line)):
            places = _places(changes[one.id])
            if places and places.isdisjoint(taken):
                kept.append(one)
                taken |= places
        if len(kept) > 1:
            yield kept


def _joint(some: Sequence[Finding], after: Predicted, step_ms: float, least: float) -> Finding | None:
    """One finding at the first one's place, with the others' lines. None where that gains too little, or
    their evidence does not say what they may save.

    ``after``: the step with all their changes.
    """
    first, *others = some
    shortest = [within_evidence(one, step_ms) for one in some]
    lost = [step_ms - one for one in shortest if one is not None]
    now_ms = max(after.step_ms, step_ms - sum(lost))
    if len(lost) < len(some) or not 0 < now_ms <= step_ms * (1 - least / 100):
        return None
    lines = {f"line{i}": Evidence("line of the same", one.line, "line") for i, one in enumerate(others)}
    evidence = {**lines, "more": ms("lost there", sum(lost[1:]))}
    said = (
        f" The same at line{'s' * (len(lines) > 1)} {' and '.join(f'{{{line}}}' for line in lines)} takes "
        "{more} more. The gain is that of all of them: each alone gains too little to measure."
    )
    fixes = together([one.fixes for one in some])
    refused = " No edit is offered: not all of them can be written." if first.fixes and not fixes else ""
    return replace(
        first,
        message=first.message + message(said, evidence) + refused,
        evidence=(*first.evidence, *evidence.values()),
        predicted=replace(after, step_ms=now_ms, speedup=step_ms / now_ms),
        fixes=fixes,
        also=tuple(SourceLine(*one.place) for one in others),
    )
