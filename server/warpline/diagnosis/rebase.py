"""A profile moved to the current text: each line has its present line number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from warpline.model.profile import Profile
from warpline.model.report import Edit
from warpline.text.alignment import matched, word_at
from warpline.text.edits import carried
from warpline.text.lines import line_at, lines_of
from warpline.wire.births import Argument, Executed
from warpline.wire.dataflow import Dataflow, Frame

Texts = Callable[[str], "str | None"]
FileLine = tuple[str, int]


class Moves:
    """Where lines of the run are now. Files that are unchanged, or gone, keep their numbers."""

    def __init__(self, profile: Profile, texts: Texts) -> None:
        self._sources = profile.sources
        self._texts = texts
        self._by_file: dict[str, dict[int, int] | None] = {}

    def changed(self, file: str) -> bool:
        """Whether the file's text differs from the one that ran."""
        return self._lines(file) is not None

    def now(self, place: FileLine) -> FileLine | None:
        """The place now, None when its line was deleted or became another one."""
        lines = self._lines(place[0])
        if lines is None:
            return place
        line = lines.get(place[1])
        return None if line is None else (place[0], line)

    def same(self, file: str, line: int) -> bool:
        """Whether the line has the same text and indentation as then."""
        place = self.now((file, line))
        then, now = self._sources.get(file), self._texts(file)
        return place is not None and line_at(then, line) == line_at(now, place[1])

    def column(self, place: FileLine, column: int) -> int:
        """The present column of the word that began at ``column``; -1 if it was changed or deleted."""
        now = self.now(place)
        then = line_at(self._sources.get(place[0]), place[1])
        return -1 if now is None else word_at(then, line_at(self._texts(place[0]), now[1]), column)

    def new(self, file: str, count: int) -> list[int]:
        """The lines (of ``count``) that the run did not have."""
        known = set((self._lines(file) or {}).values())
        return [line for line in range(1, count + 1) if line not in known]

    def _lines(self, file: str) -> dict[int, int] | None:
        if file not in self._by_file:
            old, new = self._sources.get(file), self._texts(file)
            same = old is None or new is None or old == new
            self._by_file[file] = None if same else self._matched(file, old or "", new or "")
        return self._by_file[file]

    def _matched(self, file: str, old: str, new: str) -> dict[int, int]:
        return matched(old, new)


class Made(Moves):
    """Where lines are in ``texts``, which are the sources of ``profile`` after ``edits``."""

    def __init__(self, profile: Profile, texts: Texts, edits: Mapping[str, Sequence[Edit]]) -> None:
        super().__init__(profile, texts)
        self._edits = edits

    def column(self, place: FileLine, column: int) -> int:
        now = carried((place[1], column), self._edits.get(place[0], ()))
        return now[1] if now is not None and (place[0], now[0]) == self.now(place) else -1

    def _matched(self, file: str, old: str, new: str) -> dict[int, int]:
        edits, found = self._edits.get(file, ()), {}
        for line, text in enumerate(lines_of(old), 1):
            now = carried((line, len(text) - len(text.lstrip())), edits)
            if now is not None:
                found[line] = now[0]
        taken = set(found.values())
        return found | {
            then: now for then, now in matched(old, new).items() if then not in found and now not in taken
        }


def rebase(profile: Profile, texts: Texts, moves: Moves | None = None) -> Profile:
    """``profile`` with every place moved; what stood on lines that are gone is left out.

    ``moves``: those of ``profile`` and ``texts``, where they are known already.
    """
    moves = moves or Moves(profile, texts)
    files = {cost.file for cost in profile.lines} | {site.file for site in profile.facts.sites}
    files |= set(profile.facts.executed.lines)
    files |= {site.file for site in profile.facts.dataflow.sites}
    files |= {
        argument.holder.file for site in profile.facts.sites for argument in site.arguments if argument.holder
    }
    if not any(moves.changed(file) for file in files):
        return profile
    lines = [
        replace(cost, line=place[1]) for cost in profile.lines if (place := moves.now(cost.place)) is not None
    ]
    sites = [
        replace(
            site,
            line=place[1],
            uses=tuple(use for use in map(moves.now, site.uses) if use is not None),
            frames=tuple(
                replace(frame, line=there[1])
                for frame in site.frames
                if (there := moves.now(frame.place)) is not None
            ),
            arguments=tuple(_argument(one, moves) for one in site.arguments),
        )
        for site in profile.facts.sites
        if (place := moves.now(site.place)) is not None
    ]
    events = [
        replace(event, line=place[1])
        for event in profile.facts.compile_events
        if (place := moves.now(event.place)) is not None
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
                if (place := moves.now(line.place)) is not None
            ),
        )
        for kernel in profile.inside
    ]
    facts = replace(
        profile.facts,
        sites=tuple(sites),
        compile_events=tuple(events),
        executed=_executed(profile.facts.executed, texts, moves),
        dataflow=_dataflow(profile.facts.dataflow, moves),
    )
    return replace(profile, lines=tuple(lines), facts=facts, groups=tuple(groups), inside=tuple(inside))


def _argument(argument: Argument, moves: Moves) -> Argument:
    """``argument`` with its holder moved; unknown if its line is gone or changed."""
    holder = argument.holder
    if holder is None or not moves.changed(holder.file):
        return argument
    place = moves.now(holder.place)
    if place is None:
        return replace(argument, holder=None)
    column = holder.column
    if column >= 0 and not moves.same(holder.file, holder.line):
        column = moves.column(holder.place, column)
    return replace(argument, holder=replace(holder, line=place[1], column=column))


def _dataflow(flow: Dataflow, moves: Moves) -> Dataflow:
    """The record with its sites moved; line 0 for sites with a deleted line."""
    places = (moves.now(site.place) for site in flow.sites)
    sites = (
        replace(site, line=0 if place is None else place[1])
        for site, place in zip(flow.sites, places, strict=True)
    )
    return replace(flow, sites=tuple(sites), frames=tuple(_frame(one, moves) for one in flow.frames))


def _frame(frame: Frame, moves: Moves) -> Frame:
    """``frame`` moved; line 0 if its line is gone, no columns if it changed."""
    place = moves.now(frame.place)
    span = frame.span if place is not None and moves.same(frame.file, frame.line) else ()
    if place is None or not span:
        return replace(frame, line=0 if place is None else place[1], span=())
    return replace(frame, line=place[1], span=(span[0] + place[1] - frame.line, *span[1:]))


def _executed(executed: Executed, texts: Texts, moves: Moves) -> Executed:
    """The lines that ran, moved. Of a line that was written since, it is not known whether it runs."""
    lines, partial = dict(executed.lines), dict(executed.partial)
    for file in executed.lines:
        if moves.changed(file):
            now = (moves.now((file, line)) for line in executed.lines[file])
            lines[file] = tuple(place[1] for place in now if place is not None)
            ends = (
                (moves.now((file, begin)), moves.now((file, end)))
                for begin, end in executed.partial.get(file, ())
            )
            # Lines can have swapped places: the range still has both.
            kept = [(min(a[1], b[1]), max(a[1], b[1])) for a, b in ends if a is not None and b is not None]
            count = len(lines_of(texts(file) or ""))
            partial[file] = (*kept, *((line, line) for line in moves.new(file, count)))
    return replace(executed, lines=lines, partial=partial)
