"""The rows of one run: its profile and its report, taken apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from warpline.model.profile import LineCost, Profile
from warpline.model.report import Report
from warpline.wire.trend import Trend

NS_PER_MS = 1e6

WINDOW_LINE_COLUMNS = ("step", "file", "line", "host_ms")
WINDOW_COLUMNS = ("step", "began", "steps", "step_ms", "slowest_ms", "between_ms", "memory_bytes")

LINE_FIELDS = (
    "file", "line", "function", "step_ms", "device_ms", "forward_ms", "backward_ms", "recompute_ms",
    "idle_ms", "cpu_ms", "sync_ms", "loader_ms", "gc_ms", "copy_ms", "communication_ms", "calls", "launches",
    "memory_bytes", "kept_bytes", "allocator_calls", "allocator_ms",
)  # fmt: skip
KERNEL_FIELDS = (
    "name", "phase", "kind", "count", "device_ms", "grid", "block", "registers", "shared_bytes",
    "occupancy_percent", "bytes", "tensor_cores",
)  # fmt: skip
OP_FIELDS = (
    "name", "phase", "count", "device_ms", "cpu_ms", "shapes", "dtypes", "strides", "launches", "outer",
    "flops", "bytes", "tensor_core_dtype",
)  # fmt: skip

MODULE_COLUMNS = (
    "module", "file", "line", "function", "library_file", "library_line", "library_function", "step_ms",
    "device_ms", "sync_ms", "calls", "text", "prefill_ms", "decode_ms",
)  # fmt: skip
PASS_COLUMNS = (
    "file", "line", "function", "kind", "count", "step_ms", "pass_ms", "pass_device_ms", "pass_idle_ms",
    "pass_host_ms",
)  # fmt: skip

LINE_COLUMNS = (*LINE_FIELDS, "flops", "percent_of_peak", "bound", "text")
FINDING_COLUMNS = (
    "id", "rule", "severity", "file", "line", "cause_file", "cause_line", "message", "predicted_step_ms",
    "predicted_speedup", "predicted_basis", "measured_speedup", "measured_low", "measured_high", "fixes",
)  # fmt: skip


#: Columns of numbers: their units end their names, or these words do, or they are the whole name.
NUMBER_ENDS = ("_ms", "_bytes", "_percent", "_speedup", "_line", "_calls", "percent_of_peak")
NUMBERS = (
    "bytes",
    "calls",
    "count",
    "flops",
    "launches",
    "line",
    "measured_high",
    "measured_low",
    "registers",
)


def frame(rows: Iterable[tuple[Any, ...]], columns: tuple[str, ...]) -> pd.DataFrame:
    """A table of rows; with the columns alone where there are no rows.

    A column of numbers is one without any number too (a run without kernels): pandas cannot sort objects.
    """
    frame: pd.DataFrame = pd.DataFrame.from_records(list(rows), columns=list(columns))
    for name in columns:
        if (name.endswith(NUMBER_ENDS) or name in NUMBERS) and frame[name].isna().all():
            frame[name] = frame[name].astype("float64")
    return frame


def line_row(cost: LineCost, texts: dict[str, list[str]]) -> tuple[Any, ...]:
    """A line's costs in milliseconds a step, its roofline where it has one, and its text."""
    roof = cost.roofline
    measured = (roof.flops, roof.percent_of_peak, roof.bound) if roof else (None, None, None)
    text = texts.get(cost.file, [])
    shown = text[cost.line - 1] if 0 < cost.line <= len(text) else ""
    return (*(getattr(cost, field) for field in LINE_FIELDS), *measured, shown)


def below(profile: Profile, table: str, fields: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
    """The rows of each line, then those that no line was found for."""
    for cost in profile.lines:
        for row in getattr(cost, table):
            yield (cost.file, cost.line, *(getattr(row, field) for field in fields))
    for row in getattr(profile, f"unattributed_{table}"):
        yield ("", 0, *(getattr(row, field) for field in fields))


def finding_rows(report: Report) -> Iterable[tuple[Any, ...]]:
    """A row for each finding: its place, its message, the predicted and the measured gain."""
    for found in report.findings:
        guess, proof = found.predicted, found.measured
        yield (
            found.id, found.rule, found.severity, found.file, found.line, found.cause.file, found.cause.line,
            found.message,
            *((guess.step_ms, guess.speedup, guess.basis) if guess else (None, None, None)),
            *((proof.speedup, proof.low, proof.high) if proof else (None, None, None)),
            len(found.fixes),
        )  # fmt: skip


def step_rows(profile: Profile) -> Iterable[tuple[str, int, float]]:
    """Milliseconds of each timed step and of each captured step."""
    for at, length in enumerate(profile.manifest.timed_ns):
        yield "timing", at, length / NS_PER_MS
    for at, (start, end) in enumerate(profile.manifest.captured):
        yield "capture", at, (end - start) / NS_PER_MS


def module_rows(profile: Profile) -> Iterable[tuple[Any, ...]]:
    """A row for each module that a line's time went to, in milliseconds a step."""
    for cost in profile.lines:
        for part in cost.inside:
            yield (
                part.module, cost.file, cost.line, cost.function, part.file, part.line, part.function,
                part.step_ms, part.device_ms, part.sync_ms, part.calls, part.text, part.prefill_ms,
                part.decode_ms,
            )  # fmt: skip


def pass_rows(profile: Profile) -> Iterable[tuple[Any, ...]]:
    """A row for each kind of pass of each line that calls ``generate``."""
    for cost in profile.lines:
        if cost.tokens is not None:
            for kind, its in (("prefill", cost.tokens.prefill), ("decode", cost.tokens.decode)):
                yield (
                    cost.file, cost.line, cost.function, kind, its.count, its.step_ms, its.pass_ms,
                    its.pass_device_ms, its.pass_idle_ms, its.pass_host_ms,
                )  # fmt: skip


def window_line_rows(trend: Trend | None) -> Iterable[tuple[Any, ...]]:
    """The host's milliseconds at each line, in each window of steps of a long run."""
    for one in trend.windows if trend is not None else ():
        for at, ns in one.lines_ns:
            yield one.step, *(trend.places[at] if trend is not None else ()), ns / NS_PER_MS


def window_rows(trend: Trend | None) -> Iterable[tuple[Any, ...]]:
    """The step time and the memory in each window of steps of a long run."""
    for one in trend.windows if trend is not None else ():
        yield (
            one.step, pd.Timestamp(one.began_ns, unit="ns", tz="UTC"), len(one.steps_ns),
            one.step_ns / NS_PER_MS, max(one.steps_ns) / NS_PER_MS,
            math.nan if one.between_ns is None else one.between_ns / NS_PER_MS, one.memory_bytes,
        )  # fmt: skip
