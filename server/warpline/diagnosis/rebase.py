"""A profile moved onto the text as it is now: its lines are where the edits of others left them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher

from warpline.model.profile import Profile

Texts = Callable[[str], "str | None"]
Place = tuple[str, int]

#: Below this likeness a replaced line counts as another line, not as the same one changed.
LIKENESS = 0.5


class Moves:
    """Where lines of the run stand now. Files that are unchanged, or gone, keep their numbers."""

    def __init__(self, profile: Profile, texts: Texts) -> None:
        self._sources = profile.sources
        self._texts = texts
        self._by_file: dict[str, dict[int, int] | None] = {}

    def changed(self, file: str) -> bool:
        return self._lines(file) is not None

    def now(self, place: Place) -> Place | None:
        """The place now, None when its line was deleted or became another one."""
        lines = self._lines(place[0])
        if lines is None:
            return place
        line = lines.get(place[1])
        return None if line is None else (place[0], line)

    def _lines(self, file: str) -> dict[int, int] | None:
        if file not in self._by_file:
            old, new = self._sources.get(file), self._texts(file)
            same = old is None or new is None or old == new
            self._by_file[file] = None if same else aligned(old or "", new or "")
        return self._by_file[file]


def aligned(old: str, new: str) -> dict[int, int]:
    """``{line of old: line of new}``, 1-based. Indentation does not count: blocks get wrapped."""
    before, after = _keys(old), _keys(new)
    # Most edits are in one place: comparing only from there to there takes a twentieth of the time.
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-1 - n] != after[-1 - n]), shorter - head)
    found = {n: n for n in range(1, head + 1)}
    found.update((len(before) - n, len(after) - n) for n in range(tail))
    inner = before[head : len(before) - tail], after[head : len(after) - tail]
    for tag, *span in SequenceMatcher(None, *inner, autojunk=False).get_opcodes():
        i1, i2, j1, j2 = (at + head for at in span)
        if tag == "equal":
            found.update((i + 1, j1 + i - i1 + 1) for i in range(i1, i2))
        elif tag == "replace":
            j = j1
            for i in range(i1, i2):
                best = max(range(j, j2), key=lambda k, i=i: _likeness(before[i], after[k]), default=None)  # type: ignore[misc]
                if best is not None and _likeness(before[i], after[best]) >= LIKENESS:
                    found[i + 1] = best + 1
                    j = best + 1
    return found


def _keys(text: str) -> list[str]:
    return [line.strip() for line in re.split(r"\r\n|\r|\n", text)]


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio() if one and other else 0.0


def rebase(profile: Profile, texts: Texts, moves: Moves | None = None) -> Profile:
    """``profile`` with every place moved; what stood on lines that are gone is left out.

    ``moves``: those of ``profile`` and ``texts``, where they are known already.
    """
    moves = moves or Moves(profile, texts)
    files = {cost.file for cost in profile.lines} | {site.file for site in profile.facts.sites}
    if not any(moves.changed(file) for file in files):
        return profile
    lines = [
        replace(cost, line=place[1])
        for cost in profile.lines
        if (place := moves.now((cost.file, cost.line))) is not None
    ]
    sites = [
        replace(site, line=place[1], uses=tuple(use for use in map(moves.now, site.uses) if use is not None))
        for site in profile.facts.sites
        if (place := moves.now((site.file, site.line))) is not None
    ]
    events = [
        replace(event, line=place[1])
        for event in profile.facts.compile_events
        if (place := moves.now((event.file, event.line))) is not None
    ]
    groups = [
        replace(group, lines=tuple(place for place in map(moves.now, group.lines) if place is not None))
        for group in profile.groups
    ]
    inside = [
        replace(
            kernel,
            lines=tuple(
                replace(line, line=place[1])
                for line in kernel.lines
                if (place := moves.now((line.file, line.line))) is not None
            ),
        )
        for kernel in profile.inside
    ]
    facts = replace(profile.facts, sites=tuple(sites), compile_events=tuple(events))
    return replace(profile, lines=tuple(lines), facts=facts, groups=tuple(groups), inside=tuple(inside))
