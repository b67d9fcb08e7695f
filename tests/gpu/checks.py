"""What must hold for the report of a run on a GPU: a fresh one on the device, a recorded one elsewhere.

Ground truth comes from marks in the scripts (``# only: aten::silu``: no other line uses that operator)
and from the trace as torch.profiler wrote it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from warpline.model.report import Line, Report
from warpline.model.run import Manifest

#: Trace times are microseconds since this field's moment, which is in nanoseconds.
BASE = "baseTimeNanoseconds"


def lines_make_the_step(report: Report) -> None:
    total = sum(line.step_ms for line in report.lines) + report.unattributed.step_ms
    assert total == pytest.approx(report.steps.step_ms, rel=0.01)


def kernels_make_torch_total(report: Report, run: Path, manifest: Manifest) -> None:
    """All lines' device time is the sum over the trace's kernels and copies within 0.1 %."""
    trace = json.loads((run / "trace.json").read_text())
    first, last = manifest.captured[0][0], manifest.captured[-1][1]
    begun = {
        event["args"]["correlation"]
        for event in trace["traceEvents"]
        if event.get("cat") in ("cuda_runtime", "cuda_driver")
        and first <= trace[BASE] + 1000 * event["ts"] < last
    }
    torch_ms = sum(
        event["dur"] / 1000
        for event in trace["traceEvents"]
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
        and event["args"]["correlation"] in begun
    )
    ours = sum(line.device_ms for line in report.lines) + report.unattributed.device_ms
    assert ours * report.steps.captured == pytest.approx(torch_ms, rel=0.001)


def operators_are_on_their_lines(report: Report, file: str, text: str) -> int:
    """Each operator named by ``# only:`` is on that line of ``file`` and on no other; how many there were."""
    marks = {}
    for number, line in enumerate(text.splitlines(), 1):
        if only := re.search(r"# only: (aten::\w+)", line):
            marks[only[1]] = number
    for operator, number in marks.items():
        users = [(line.file, line.line) for line in report.lines if operator in {op.name for op in line.ops}]
        assert users == [(file, number)], operator
    return len(marks)


def marked(report: Report, file: str, text: str, mark: str) -> Line:
    """The costs of the one line of ``file`` that has ``mark`` in it."""
    (number,) = (number for number, line in enumerate(text.splitlines(), 1) if mark in line)
    (found,) = (line for line in report.lines if (line.file, line.line) == (file, number))
    return found


def found(report: Report, rule: str) -> tuple[str, int]:
    """The file's name and the line at which ``rule`` speaks, once."""
    (one,) = (finding for finding in report.findings if finding.rule == rule)
    return Path(one.file).name, one.line
