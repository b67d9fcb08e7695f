"""The page of a run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from warpline import pipeline, runs
from warpline.html.compared import Against
from warpline.html.page import page
from warpline.model.problem import Problem
from warpline.model.tracks import Timeline
from warpline.view.compare import compare


def page_of(run: Path, before: Path | None, cwd: str, say: Callable[[str], object]) -> str:
    """The whole page as text. ``before``: an earlier run to compare with; ``cwd``: files in it are named
    without it; ``say`` gets a line for what is left out. Raises Problem."""
    report, profile = pipeline.report_of(run), pipeline.profile_of(run)
    return page(
        report,
        profile,
        _timeline(run, say),
        _against(before, run) if before is not None else None,
        pipeline.roofs_of(profile),
        pipeline.ranks_of(run),
        cwd=cwd,
    )


def _timeline(run: Path, say: Callable[[str], object]) -> Timeline | None:
    """The run's timeline. None, with a message, where the trace cannot be read any more: the page has the
    rest."""
    try:
        return pipeline.timeline_of(run)
    except Problem as problem:
        say(f"the page has no timeline: {problem}")
        return None


def _against(before: Path, after: Path) -> Against:
    old, new = pipeline.report_of(before), pipeline.report_of(after)
    return Against(before.name, old, compare(old, new, runs.sources(before), runs.sources(after)))
