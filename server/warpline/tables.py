"""A run as pandas tables: ``tables = warpline.load(run)``, then ``tables.lines`` and the others.

All times are means per captured step in milliseconds, brought to the unprofiled step's scale.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from warpline import pipeline
from warpline.model import units
from warpline.model.profile import LineCost, Profile
from warpline.model.report import Report

NS_PER_MS = 1e6


@dataclass(frozen=True, repr=False)
class Tables:
    """Five tables. ``lines``, ``kernels``, ``ops`` and ``findings`` share ``file`` and ``line``.

    ``lines``: one row a source line, most expensive first.

    - ``file``: absolute path
    - ``line``: line number, from 1
    - ``function``: qualified name of the function around it
    - ``step_ms``: what the line adds to the step; all rows plus the unattributed rest make the step
    - ``device_ms``: time of the kernels and copies it caused, in all phases
    - ``forward_ms``: device_ms of its forward
    - ``backward_ms``: device_ms of the backward of what it made
    - ``recompute_ms``: device_ms of its recomputation under checkpointing
    - ``idle_ms``: time in which the device had nothing to do because the host was here
    - ``cpu_ms``: host time here, callees outside the user's files included
    - ``sync_ms``: part of cpu_ms spent waiting for the device
    - ``loader_ms``: part of cpu_ms spent on, or waiting for, the next batch
    - ``gc_ms``: part of cpu_ms spent in garbage collections
    - ``copy_ms``: part of device_ms that is copies
    - ``communication_ms``: part of device_ms that is collectives
    - ``calls``: executions per step
    - ``launches``: kernels and copies launched per step; on a CPU operators that call no other
    - ``memory_bytes``: allocated here and still held at the step's memory peak
    - ``kept_bytes``: allocated here per step and not freed while we looked
    - ``flops``: floating-point operations per step, where known
    - ``percent_of_peak``: of the device's peak (compute or memory, whichever is nearer), where known
    - ``bound``: "compute", "memory" or "launch", where known
    - ``text``: the line as it was when the script ran

    ``kernels``: one row for each line, phase, kernel name and launch shape.

    - ``file``, ``line``: the source line
    - ``name``: the kernel's (demangled) name
    - ``phase``: "forward", "backward" or "recompute"
    - ``kind``: "kernel", "copy", "set" or "communication"
    - ``count``: launches per step
    - ``device_ms``: time per step
    - ``grid``, ``block``: launch shape, three integers each
    - ``registers``: per thread
    - ``shared_bytes``: shared memory per block
    - ``occupancy_percent``: torch's estimate
    - ``bytes``: moved per step (copies only)
    - ``tensor_cores``: True, False, or None where the name does not tell

    ``ops``: one row for each line, phase, operator and input signature.

    - ``file``, ``line``: the source line
    - ``name``: the operator
    - ``phase``: "forward", "backward" or "recompute"
    - ``count``: calls per step
    - ``device_ms``: of the kernels it launched itself; on a CPU its own time without callees
    - ``cpu_ms``: host time, callees included
    - ``shapes``, ``dtypes``, ``strides``: of its inputs
    - ``launches``: kernels it launched itself, per step
    - ``outer``: called by the line itself and not by another operator
    - ``flops``: floating-point operations per call, where known
    - ``bytes``: least memory traffic per call, where known
    - ``tensor_core_dtype``: as what tensor cores can do it ("bfloat16", "tf32"), None where they cannot

    ``findings``: one row a finding, in the report's order.

    - ``id``: stays the same across edits elsewhere in the file
    - ``rule``: its name
    - ``severity``: "error", "warning", "information" or "hint"
    - ``file``, ``line``: the edit site
    - ``cause_file``, ``cause_line``: the hot line
    - ``message``: what is wrong
    - ``predicted_step_ms``, ``predicted_speedup``, ``predicted_basis``: where there is a prediction
    - ``measured_speedup``, ``measured_low``, ``measured_high``: where it was measured
    - ``fixes``: number of fixes

    ``steps``: one row a step that was watched.

    - ``window``: "timing" (without the profiler) or "capture" (with it)
    - ``step``: number within the window, from 0
    - ``wall_ms``: duration
    """

    lines: pd.DataFrame
    kernels: pd.DataFrame
    ops: pd.DataFrame
    findings: pd.DataFrame
    steps: pd.DataFrame
    report: Report
    profile: Profile

    def __repr__(self) -> str:
        """One line: a notebook shows what a cell ends with, and all of it would be a book."""
        sizes = ", ".join(f"{name} {len(getattr(self, name))}" for name in TABLES)
        return (
            f"<Tables of {self.report.script}, {units.ms(self.report.steps.step_ms)} a step; rows: {sizes}>"
        )


TABLES = ("lines", "kernels", "ops", "findings", "steps")
LINE_FIELDS = (
    "file", "line", "function", "step_ms", "device_ms", "forward_ms", "backward_ms", "recompute_ms",
    "idle_ms", "cpu_ms", "sync_ms", "loader_ms", "gc_ms", "copy_ms", "communication_ms", "calls", "launches",
    "memory_bytes", "kept_bytes",
)  # fmt: skip
KERNEL_FIELDS = (
    "name", "phase", "kind", "count", "device_ms", "grid", "block", "registers", "shared_bytes",
    "occupancy_percent", "bytes", "tensor_cores",
)  # fmt: skip
OP_FIELDS = (
    "name", "phase", "count", "device_ms", "cpu_ms", "shapes", "dtypes", "strides", "launches", "outer",
    "flops", "bytes", "tensor_core_dtype",
)  # fmt: skip


def load(run: str | Path) -> Tables:
    """The tables of the run folder ``run``. Raises Problem when it is not one."""
    folder = Path(run)
    profile, report = pipeline.profile_of(folder), pipeline.report_of(folder)
    texts = {path: text.splitlines() for path, text in profile.sources.items()}
    return Tables(
        lines=_frame((_line(cost, texts) for cost in profile.lines), _LINE_COLUMNS),
        kernels=_frame(_below(profile, "kernels", KERNEL_FIELDS), ("file", "line", *KERNEL_FIELDS)),
        ops=_frame(_below(profile, "ops", OP_FIELDS), ("file", "line", *OP_FIELDS)),
        findings=_frame(_findings(report), _FINDING_COLUMNS),
        steps=_frame(_steps(profile), ("window", "step", "wall_ms")),
        report=report,
        profile=profile,
    )


_LINE_COLUMNS = (*LINE_FIELDS, "flops", "percent_of_peak", "bound", "text")
_FINDING_COLUMNS = (
    "id", "rule", "severity", "file", "line", "cause_file", "cause_line", "message", "predicted_step_ms",
    "predicted_speedup", "predicted_basis", "measured_speedup", "measured_low", "measured_high", "fixes",
)  # fmt: skip


def _frame(rows: Iterable[tuple[Any, ...]], columns: tuple[str, ...]) -> pd.DataFrame:
    frame: pd.DataFrame = pd.DataFrame.from_records(list(rows), columns=list(columns))
    return frame


def _line(cost: LineCost, texts: dict[str, list[str]]) -> tuple[Any, ...]:
    roof = cost.roofline
    measured = (roof.flops, roof.percent_of_peak, roof.bound) if roof else (None, None, None)
    text = texts.get(cost.file, [])
    shown = text[cost.line - 1] if 0 < cost.line <= len(text) else ""
    return (*(getattr(cost, field) for field in LINE_FIELDS), *measured, shown)


def _below(profile: Profile, table: str, fields: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
    for cost in profile.lines:
        for row in getattr(cost, table):
            yield (cost.file, cost.line, *(getattr(row, field) for field in fields))


def _findings(report: Report) -> Iterable[tuple[Any, ...]]:
    for found in report.findings:
        guess, proof = found.predicted, found.measured
        yield (
            found.id, found.rule, found.severity, found.file, found.line, found.cause.file, found.cause.line,
            found.message,
            *((guess.step_ms, guess.speedup, guess.basis) if guess else (None, None, None)),
            *((proof.speedup, proof.low, proof.high) if proof else (None, None, None)),
            len(found.fixes),
        )  # fmt: skip


def _steps(profile: Profile) -> Iterable[tuple[str, int, float]]:
    for at, length in enumerate(profile.manifest.timed_ns):
        yield "timing", at, length / NS_PER_MS
    for at, (start, end) in enumerate(profile.manifest.captured):
        yield "capture", at, (end - start) / NS_PER_MS
