"""The GPU runs of tests/captures, read as everywhere: what `make gpu-test` asks of fresh ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CAPTURES, ROOT
from tests.gpu import checks
from warpline import pipeline, runs
from warpline.model.report import Report

Recorded = Callable[[str], Path]

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz"))
WELL_MADE = sorted(path.stem for path in (ROOT / "tests/gpu/well_made").glob("*.py"))
#: Which line of which file the finding of each case belongs to, by a part of its text.
CASES = {
    "loader-without-workers": ("loader-without-workers", "slow.py", "DataLoader(Digits"),
    "fp32-bert": ("fp32-matmul", "slow.py", "logits = model(tokens)"),
    "transpose-kernel": ("uncoalesced-access", "slow.py", "tl.store("),
    "layernorm-finetune": ("hand-written-norm", "slow.py", "return self.gamma * x + self.beta"),
}


@pytest.fixture(params=NAMES)
def run(request: pytest.FixtureRequest, recorded: Recorded) -> Path:
    return recorded(request.param)


def script_of(run: Path) -> tuple[str, str]:
    script = runs.manifest(run).script
    return script, runs.sources(run)[script]


def test_lines_make_the_step(run: Path) -> None:
    checks.lines_make_the_step(pipeline.report_of(run))


def test_kernels_make_torch_total(run: Path) -> None:
    checks.kernels_make_torch_total(pipeline.report_of(run), run, runs.manifest(run))


def test_device_time_is_attributed(run: Path) -> None:
    report = pipeline.report_of(run)
    assert report.environment.device.kind == "cuda"
    assert report.attributed.device_percent >= 99


@pytest.mark.parametrize(("name", "marks"), [("channels_last", 4), ("checkpointed", 2), ("two_streams", 2)])
def test_operators_that_one_line_uses_are_on_that_line(name: str, marks: int, recorded: Recorded) -> None:
    run = recorded(name)
    assert checks.operators_are_on_their_lines(pipeline.report_of(run), *script_of(run)) == marks


@pytest.mark.parametrize("mark", ["sin", "abs"])
def test_compiled_kernels_go_to_the_lines_they_were_fused_from(mark: str, recorded: Recorded) -> None:
    run = recorded("compiled")
    line = checks.marked(pipeline.report_of(run), *script_of(run), f"# only: {mark}")
    assert any(mark in kernel.name.lower() for kernel in line.kernels)


def test_recomputation_is_a_phase(recorded: Recorded) -> None:
    run = recorded("checkpointed")
    line = checks.marked(pipeline.report_of(run), *script_of(run), "aten::erf")
    assert line.recompute_ms == pytest.approx(line.forward_ms, rel=0.2)
    assert line.backward_ms > 0


def test_what_hides_behind_a_longer_kernel_costs_nothing(recorded: Recorded) -> None:
    run = recorded("two_streams")
    hidden = checks.marked(pipeline.report_of(run), *script_of(run), "aten::special_i0")
    assert hidden.device_ms > 0
    assert hidden.step_ms <= 0.1 * hidden.device_ms + hidden.idle_ms


def test_a_planted_delay_lands_on_its_line(recorded: Recorded) -> None:
    run = recorded("waits")
    report = pipeline.report_of(run)
    planted = checks.marked(report, *script_of(run), "# planted")
    loop = next(line for line in report.lines if (line.file, line.line) == (planted.file, planted.line - 1))
    assert planted.idle_ms + loop.idle_ms == pytest.approx(20.0, rel=0.05)
    assert checks.marked(report, *script_of(run), "# waits").sync_ms > 0


@pytest.mark.parametrize("name", CASES)
def test_each_case_is_found_at_its_line(name: str, recorded: Recorded) -> None:
    rule, file, text = CASES[name]
    run = recorded(name)
    _, source = script_of(run)
    (number,) = (number for number, line in enumerate(source.splitlines(), 1) if text in line)
    assert checks.found(pipeline.report_of(run), rule) == (file, number)


def test_every_well_made_script_was_recorded() -> None:
    assert set(WELL_MADE) <= set(NAMES)


@pytest.mark.parametrize("name", WELL_MADE)
def test_nothing_is_found_in_a_well_made_script(name: str, recorded: Recorded) -> None:
    report: Report = pipeline.report_of(recorded(name))
    loud = [(f.rule, f.line, f.message) for f in report.findings if f.severity != "hint"]
    assert loud == []
