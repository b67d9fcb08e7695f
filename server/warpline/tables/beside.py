"""Rows from other runs: the run's ranks, the runs of its folder, the same lines in earlier runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from warpline import keeping, pipeline, runs
from warpline.model.problem import Problem
from warpline.model.report import Line, Report
from warpline.tables.of_run import frame
from warpline.text.lines import lines_of
from warpline.view import compare

RANK_TOTALS = (
    "device_ms", "idle_ms", "loader_ms", "sync_ms", "communication_ms", "exposed_communication_ms",
    "collective_wait_ms", "peak_bytes",
)  # fmt: skip
RANK_COLUMNS = ("rank", "world_size", "run", "step_ms", "device_busy_percent", *RANK_TOTALS)
RUN_COLUMNS = ("run", "path", "script", "arguments", "created", "step_ms", "bytes")
TREND_COLUMNS = (
    "created", "run", "file", "line", "text", "step_ms", "device_ms", "memory_bytes", "of_step_ms",
)  # fmt: skip
CHANGE_COLUMNS = (
    "difference_ms", "before_ms", "after_ms", "change", "file", "line", "before_file", "before_line", "text",
)  # fmt: skip


def ranks(run: Path) -> pd.DataFrame:
    """A row for each rank of a job, by rank. A run of one process has one row."""
    return frame(sorted(_ranks(run), key=lambda row: row[0]), RANK_COLUMNS)


def _ranks(run: Path) -> Iterable[tuple[Any, ...]]:
    """A row for each rank; none for a rank whose folder cannot be read."""
    for folder in (run, *runs.rank_folders(run)):
        try:
            profile = pipeline.profile_of(folder)
        except Problem:
            continue
        manifest, steps = profile.manifest, profile.steps
        yield (
            manifest.rank, manifest.world_size, str(folder), steps.step_ms, steps.device_busy_percent,
            *(profile.totals.get(name, math.nan) for name in RANK_TOTALS),
        )  # fmt: skip


def runs_of(run: Path) -> pd.DataFrame:
    """A row for each run in the same folder; times in UTC, sizes in bytes."""
    folder = run.absolute().parent
    return frame(
        (
            (
                each.run, str(folder / each.run), each.script, " ".join(each.argv),
                pd.Timestamp(each.created_s, unit="s", tz="UTC"), each.step_ms, each.bytes,
            )
            for each in keeping.listed(folder)
        ),
        RUN_COLUMNS,
    )  # fmt: skip


def trends(run: Path) -> pd.DataFrame:
    """The lines of a run in all runs of its folder with the same script and arguments. Lines are matched by
    their text. Runs that cannot be read are left out."""
    folder, newest = run.absolute().parent, runs.manifest(run)
    report, sources = pipeline.report_of(run), runs.sources(run)
    found: list[tuple[Any, ...]] = []
    for each in reversed(keeping.listed(folder)):
        path = folder / each.run
        try:
            manifest = runs.manifest(path)
            if (manifest.script, manifest.argv) != (newest.script, newest.argv):
                continue
            other, texts = pipeline.report_of(path), runs.sources(path)
        except Problem:
            continue
        created = pd.Timestamp(manifest.created_ns, unit="ns", tz="UTC")
        found += _lines_of(report, sources, (created, each.run), other, texts)
    return frame(found, TREND_COLUMNS)


def _lines_of(
    now: Report, sources: Mapping[str, str], made: tuple[Any, ...], then: Report, texts: Mapping[str, str]
) -> Iterable[tuple[Any, ...]]:
    """The lines of ``now`` as they were ``then``; one that was not there yet has no row."""
    costs = {(line.file, line.line): line for line in then.lines}
    back: dict[str, dict[int, int]] = {}
    for line in now.lines:
        if line.file not in back:
            new, old = lines_of(sources.get(line.file, "")), lines_of(texts.get(line.file, ""))
            back[line.file] = {after: before for before, (after, _) in compare.match(old, new).items()}
        before = back[line.file].get(line.line)
        if before is None:
            continue
        cost = costs.get((line.file, before))
        words = lines_of(sources.get(line.file, ""))[line.line - 1]
        yield (*made, line.file, line.line, words, *_cost(cost), then.steps.step_ms)


def _cost(line: Line | None) -> tuple[float, float, int]:
    return (line.step_ms, line.device_ms, line.memory_bytes) if line is not None else (0.0, 0.0, 0)


def changes(
    before: Report, after: Report, before_sources: Mapping[str, str], after_sources: Mapping[str, str]
) -> pd.DataFrame:
    """A row for each line of either run, with its milliseconds a step before and after. Lines are matched by
    their text."""
    found = compare.compare(before, after, before_sources, after_sources)
    made = frame(
        (
            (
                pair.difference_ms, pair.before_ms, pair.after_ms, pair.change,
                *(pair.after or (None, None)), *(pair.before or (None, None)), pair.source,
            )
            for pair in found.pairs
        ),
        CHANGE_COLUMNS,
    )  # fmt: skip
    for column in ("line", "before_line"):
        made[column] = made[column].astype("Int64")  # whole numbers also beside a missing one
    return made
