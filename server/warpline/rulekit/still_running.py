"""Statements that run as long as the measured steps: a line below one of them runs only after these.

The record of a step tells them: the calls that all of its operators have around them and that the captured
steps did not begin again, and the loop whose rounds are the steps.
"""

from __future__ import annotations

import libcst as cst

from warpline.model.profile import Profile
from warpline.syntax.source import Source, Statement
from warpline.wire.dataflow import Dataflow, Frame, running


class StillRunning:
    """Asked about statements of the text as it is now (the profile has been moved onto it)."""

    def __init__(self, profile: Profile) -> None:
        self._lines: dict[str, dict[int, str]] = {}  # those that the captured steps ran, with their functions
        for cost in profile.lines:
            self._lines.setdefault(cost.file, {})[cost.line] = cost.function
        self._around, self._below = _around_all(profile.facts.dataflow)

    def statement(self, source: Source, statement: Statement) -> bool:
        """Whether ``statement`` is seen to run as long as the steps."""
        for at, frame in enumerate(self._around):
            begun = self._begun_again(source, frame) if frame.file == source.path else self._has_run(frame)
            if begun:
                return self._is_their_loop(source, statement, self._around[at : at + 1])
            inner = source.statement_at(frame.line) if frame.file == source.path else None
            if inner is not None and _holds(source, statement, inner):
                return True
        return self._is_their_loop(source, statement, self._below)

    def _has_run(self, frame: Frame) -> bool:
        return frame.line in self._lines.get(frame.file, ())

    def _begun_again(self, source: Source, frame: Frame) -> bool:
        inner, lines = source.statement_at(frame.line), self._lines.get(source.path, {})
        return inner is None or any(line in lines for line in source.extent(inner))

    def _is_their_loop(self, source: Source, statement: Statement, frames: list[Frame]) -> bool:
        """Whether it is, or holds, the loop around ``frames``, which no step leaves."""
        if len({(frame.file, frame.function) for frame in frames}) != 1 or frames[0].file != source.path:
            return False
        loops = source.loops_at(frames[0].line)
        if not loops or not _holds(source, statement, loops[-1]):
            return False
        lines, extent = self._lines.get(source.path, {}), source.extent(loops[-1])
        ran = {line for line, function in lines.items() if function == frames[0].function}
        return {frame.line for frame in frames} | ran <= set(extent)


def _holds(source: Source, statement: Statement, inner: cst.CSTNode) -> bool:
    """Whether ``inner`` runs within ``statement``, and is not only defined there."""
    return source.inside(inner, statement) and source.scope(inner) is source.scope(statement)


def _around_all(flow: Dataflow) -> tuple[list[Frame], list[Frame]]:
    """The code that runs around every recorded operator, the outermost first, and what it runs directly."""
    stacks = [
        [flow.frames[frame] for frame in running(flow, stack)][::-1]
        for stack in set(flow.stack)
        if stack >= 0
    ]
    around: list[Frame] = []
    for level in zip(*stacks, strict=False):
        if len({(frame.place, frame.function) for frame in level}) != 1:
            return around, list(level)
        around.append(level[0])
    return around, []
