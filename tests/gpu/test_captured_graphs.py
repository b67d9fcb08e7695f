"""On a GPU: what a CUDA graph replays stands on the lines that were captured.

``# replayed: erfinv`` in a script: every kernel with that in its name belongs to the line, in both phases.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.captures.record import GRAPHS, scripts
from warpline import pipeline, runs

NAMES = [*GRAPHS, "cuda_graph", "cuda_graph_step"]
MARKED = [
    (name, number, mark[1])
    for name, script in GRAPHS.items()
    for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1)
    if (mark := re.search(r"# replayed: (\w+)", line))
]


@pytest.mark.parametrize("name", NAMES)
def test_replayed_time_is_on_lines(name: str, run_of: Callable[[str], Path]) -> None:
    report = pipeline.report_of(run_of(name))
    assert report.attributed.device_percent >= 99
    total = sum(line.step_ms for line in report.lines) + report.unattributed.step_ms
    assert total == pytest.approx(report.steps.step_ms, rel=0.01)


@pytest.mark.parametrize(("name", "number", "kernel"), MARKED, ids=str)
def test_replayed_kernels_are_on_their_line(
    name: str, number: int, kernel: str, run_of: Callable[[str], Path]
) -> None:
    run = run_of(name)
    script = runs.manifest(run).script
    at = {
        (line.file, line.line)
        for line in pipeline.report_of(run).lines
        for one in line.kernels
        if kernel in one.name
    }
    assert at == {(script, number)}


@pytest.mark.parametrize("name", ["cuda_graph"])
def test_backward_is_the_forward_lines(name: str, run_of: Callable[[str], Path]) -> None:
    run = run_of(name)
    script = Path(runs.manifest(run).script)
    text = scripts()[name].read_text(encoding="utf-8").splitlines()
    forward = next(number for number, line in enumerate(text, 1) if "static_loss =" in line)
    lines = {line.line: line for line in pipeline.report_of(run).lines if line.file == str(script)}
    assert lines[forward].backward_ms > lines[forward].forward_ms > 0
