"""A run as pandas tables: ``tables = warpline.load(run)``, then ``tables.lines`` and the others.

All times are means per captured step in milliseconds, brought to the unprofiled step's scale.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from warpline import pipeline, runs
from warpline.model import units
from warpline.model.profile import Profile
from warpline.model.report import Report
from warpline.tables import beside, of_run
from warpline.tables.of_run import frame
from warpline.text.lines import lines_of


@dataclass(frozen=True, repr=False)
class Tables:
    """The tables of a run. ``lines``, ``kernels``, ``ops``, ``modules`` and ``findings`` share ``file`` and
    ``line``. ``ranks``, ``runs`` and ``trends`` are read from other folders when they are first asked for.

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
    - ``allocator_calls``: calls per step of torch's allocator into the driver (cudaMalloc, cudaFree)
    - ``allocator_ms``: part of cpu_ms spent in them
    - ``flops``: floating-point operations per step, where known
    - ``percent_of_peak``: of the device's peak (compute or memory, whichever is nearer), where known
    - ``bound``: "compute", "memory" or "launch", where known
    - ``text``: the line as it was when the script ran

    ``kernels``: one row for each line, phase, kernel name and launch shape.

    - ``file``, ``line``: the source line; "" and 0 where none was found
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

    - ``file``, ``line``: the source line; "" and 0 where none was found
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

    ``windows``: one row for each time that steps were timed after the capture (``profile --every``).

    - ``step``: number of its first step since the capture
    - ``began``: when, UTC
    - ``steps``: how many were timed
    - ``step_ms``: their mean
    - ``slowest_ms``: the longest of them
    - ``between_ms``: a step's mean time since the window before, NaN in the first
    - ``memory_bytes``: held at its end: of the device, without one of the process

    ``window_lines``: one row for each line of the step after a window, where its lines were recorded.

    - ``step``: that of the window
    - ``file``, ``line``: the place
    - ``host_ms``: the host's time at it; with a device, waits for it included

    ``modules``: one row for each line of a library that a line of the user's led to, with its module.

    - ``module``: path in the model, with * where equal layers are added up; None outside a module
    - ``file``, ``line``, ``function``: the user's line
    - ``library_file``, ``library_line``, ``library_function``: the deepest library line outside torch
    - ``step_ms``: what it adds to the step; the rows of a user's line add up to the line
    - ``device_ms``: time of the kernels and copies it caused
    - ``sync_ms``: in which the host waited for the device
    - ``calls``: executions per step
    - ``text``: what the library's line says
    - ``prefill_ms``, ``decode_ms``: parts of step_ms in forward passes of ``generate``

    ``passes``: one row for each kind of forward pass, of each line that calls transformers' ``generate``.

    - ``file``, ``line``, ``function``: the user's line
    - ``kind``: "prefill" (a call's first, and an encoder's before it) or "decode"
    - ``count``: passes per step
    - ``step_ms``: what they add to the step
    - ``pass_ms``: of that, one of them
    - ``pass_device_ms``: device time of one, NaN where none was recorded
    - ``pass_idle_ms``: time in which the device was idle in one
    - ``pass_host_ms``: how long the host was in one, without the profiler

    ``ranks``: one row a rank whose steps were captured on this machine.

    - ``rank``: its number
    - ``world_size``: how many there are in all
    - ``run``: its folder; ``warpline.load`` of it gives that rank's tables
    - ``step_ms``: its step without the profiler
    - ``device_busy_percent``: share of that step in which a kernel or a copy ran
    - ``device_ms``: time of its kernels and copies
    - ``idle_ms``: time in which its device had nothing to do
    - ``loader_ms``: host time spent on, or waiting for, the next batch
    - ``sync_ms``: host time spent waiting for the device
    - ``communication_ms``: device time of collectives
    - ``exposed_communication_ms``: communication that is not overlapped with compute, if there is any
    - ``collective_wait_ms``: part of that spent waiting for the last rank, where it is known
    - ``peak_bytes``: memory held at the step's peak

    ``runs``: one row a run in the same folder as this one, the newest first.

    - ``run``: the folder's name
    - ``path``: the folder
    - ``script``: what ran
    - ``arguments``: the script's
    - ``created``: when, UTC
    - ``step_ms``: its step without the profiler, NaN where no report was made
    - ``bytes``: room it takes

    ``trends``: one row for each line of this run and each run of the same script and arguments, oldest first.

    - ``created``: when that run was made, UTC
    - ``run``: its folder's name
    - ``file``, ``line``, ``text``: the line as it is in this run; found by alignment where it moved
    - ``step_ms``: what it added to that run's step, 0 where it was there and cost nothing
    - ``device_ms``: time of the kernels and copies it caused there
    - ``memory_bytes``: allocated there and held at that step's memory peak
    - ``of_step_ms``: that run's whole step
    """

    lines: pd.DataFrame
    kernels: pd.DataFrame
    ops: pd.DataFrame
    findings: pd.DataFrame
    steps: pd.DataFrame
    windows: pd.DataFrame
    window_lines: pd.DataFrame
    modules: pd.DataFrame
    passes: pd.DataFrame
    report: Report
    profile: Profile
    folder: Path

    @property
    def operators(self) -> pd.DataFrame:
        """The same as ``ops``."""
        return self.ops

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """The ranks of the run's job, one row each."""
        return beside.ranks(self.folder)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs beside this one, one row each."""
        return beside.runs_of(self.folder)

    @cached_property
    def trends(self) -> pd.DataFrame:
        """The lines of this run in the earlier runs of the same script with the same arguments."""
        return beside.trends(self.folder)

    def changes(self, before: Tables) -> pd.DataFrame:
        """What changed from ``before`` to this run: one row a line, the largest difference first.

        ``difference_ms`` is ``after_ms`` less ``before_ms``, times as ``step_ms`` of ``lines``; ``file``,
        ``line`` is the place in this run and ``before_file``, ``before_line`` that in the other, None where
        there is none; ``change`` is "same", "edited", "added" or "removed", of the line's text. The
        differences, with that of what is unattributed, add up to the difference of the steps.
        """
        return beside.changes(before.report, self.report, before.profile.sources, self.profile.sources)

    def __repr__(self) -> str:
        """One line: a notebook shows what a cell ends with, and all of it would be a book."""
        sizes = ", ".join(f"{name} {len(getattr(self, name))}" for name in TABLES)
        return (
            f"<Tables of {self.report.script}, {units.ms(self.report.steps.step_ms)} a step; rows: {sizes}>"
        )


TABLES = ("lines", "kernels", "ops", "findings", "steps", "windows", "window_lines", "modules", "passes")
#: Of several runs or ranks; made when they are asked for.
BESIDE = ("ranks", "runs", "trends")


def load(run: str | os.PathLike[str] | None = None) -> Tables:
    """The tables of the run folder ``run``, None: the newest from here. Raises Problem without one."""
    # Some tables are read later, when we may be elsewhere.
    folder = runs.newest(runs.nearest(Path.cwd())) if run is None else Path(run).absolute()
    profile, report, trend = pipeline.profile_of(folder), pipeline.report_of(folder), runs.trend(folder)
    texts = {path: lines_of(text) for path, text in profile.sources.items()}
    kernels, ops = of_run.KERNEL_FIELDS, of_run.OP_FIELDS
    return Tables(
        lines=frame((of_run.line_row(cost, texts) for cost in profile.lines), of_run.LINE_COLUMNS),
        kernels=frame(of_run.below(profile, "kernels", kernels), ("file", "line", *kernels)),
        ops=frame(of_run.below(profile, "ops", ops), ("file", "line", *ops)),
        findings=frame(of_run.finding_rows(report), of_run.FINDING_COLUMNS),
        steps=frame(of_run.step_rows(profile), ("window", "step", "wall_ms")),
        windows=frame(of_run.window_rows(trend), of_run.WINDOW_COLUMNS),
        window_lines=frame(of_run.window_line_rows(trend), of_run.WINDOW_LINE_COLUMNS),
        modules=frame(of_run.module_rows(profile), of_run.MODULE_COLUMNS),
        passes=frame(of_run.pass_rows(profile), of_run.PASS_COLUMNS),
        report=report,
        profile=profile,
        folder=folder,
    )
