"""What the rules say of runs that were recorded on an H200, and what their fixes make of the scripts."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import CAPTURES
from warpline import pipeline, runs
from warpline.diagnosis import diagnose, together
from warpline.diagnosis.gate import within_evidence
from warpline.model.kernel import KernelInside, KernelLine
from warpline.model.report import Finding
from warpline.text.edits import apply

Recorded = Callable[[str], Path]

EXAMPLES = ["fp32-bert", "layernorm-finetune", "loader-without-workers", "quickstart", "transpose-kernel"]
SCRIPTS = ["channels_last", "checkpointed", "compiled", "two_streams", "waits"]


def findings(run: Path, *rules: str) -> list[Finding]:
    return [finding for finding in pipeline.report_of(run).findings if not rules or finding.rule in rules]


def hidden(run: Path, rule: str) -> list[Finding]:
    """Findings that gain too little as long as something slower stands before them."""
    profile = pipeline.profile_of(run)
    found = diagnose(profile, profile.sources.get, predict=pipeline.predictor_of(run))
    return [finding for finding in found.below if finding.rule == rule]


def text_at(run: Path, finding: Finding) -> str:
    return runs.sources(run)[finding.file].splitlines()[finding.line - 1].strip()


def fixed(run: Path, finding: Finding) -> str:
    return apply(runs.sources(run)[finding.file], finding.fixes[0].edits)


@pytest.mark.parametrize("name", [*EXAMPLES, *SCRIPTS])
def test_messages_can_be_read_and_numbers_agree(name: str, recorded: Recorded) -> None:
    for finding in findings(recorded(name)):
        assert len(finding.message) < 500
        assert "_ZN" not in finding.message and "at::" not in finding.message
        spent = [entry.value for entry in finding.evidence if entry.unit == "ms"]
        assert spent == [] or max(spent) > 0
        # What is counted took its time: no passes, no calls, no launches cannot.
        assert all(entry.value > 0 for entry in finding.evidence if entry.unit in ("per step", "calls"))


@pytest.mark.parametrize(
    "name", sorted(path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz"))
)
def test_no_step_of_a_plan_gains_more_than_its_evidence(name: str, recorded: Recorded) -> None:
    report = pipeline.report_of(recorded(name))
    found = {finding.id: finding for finding in report.findings}
    now_ms = report.steps.step_ms
    for step in report.plan.steps if report.plan is not None else ():
        finding = found.get(step.finding)  # else it gains too little alone, and is not in the report
        shortest = within_evidence(finding, report.steps.step_ms) if finding is not None else None
        if shortest is not None:
            assert now_ms - step.step_ms <= (report.steps.step_ms - shortest) * (1 + 1e-9)
        now_ms = step.step_ms


@pytest.mark.parametrize("name", [*EXAMPLES, *SCRIPTS])
def test_every_finding_gains_and_the_best_comes_first(name: str, recorded: Recorded) -> None:
    found = findings(recorded(name))
    predicted = [finding.predicted for finding in found if finding.predicted is not None]
    assert [after.step_ms for after in predicted] == sorted(after.step_ms for after in predicted)
    step_ms = pipeline.report_of(recorded(name)).steps.step_ms
    for finding in found:
        if (after := finding.predicted) is not None:
            assert after.step_ms <= 0.99 * step_ms or finding.rule.startswith("memory-")
            said = sum(one.value for one in finding.evidence if one.unit == "ms")
            assert step_ms - after.step_ms <= said * 1.0001 or not said


@pytest.mark.parametrize("name", [*EXAMPLES, *SCRIPTS])
def test_nobody_is_told_to_change_a_kernel_of_a_library(name: str, recorded: Recorded) -> None:
    assert findings(recorded(name), "small-grid", "tail-wave") == []


def test_images_that_are_channels_last_are_seen_to_be(recorded: Recorded) -> None:
    assert findings(recorded("channels_last"), "channels-first-conv") == []


def test_ranges_around_forward_and_backward_do_not_hide_the_step(recorded: Recorded) -> None:
    run = recorded("loader-without-workers")
    assert not findings(run, "channels-first-conv")  # the loader hides what it would gain
    (finding,) = hidden(run, "channels-first-conv")
    assert "model.to(memory_format=torch.channels_last)" in fixed(run, finding)


@pytest.mark.parametrize("name", ["loader-without-workers", "quickstart"])
def test_what_the_loader_and_torch_do_is_not_held_against_the_user(name: str, recorded: Recorded) -> None:
    told = {finding.rule for finding in findings(recorded(name))}
    assert not told & {"tensor-made-on-host", "per-tensor-optimizer", "sync-in-step"}


def test_layers_that_are_checkpointed_one_by_one_are_compiled_each(recorded: Recorded) -> None:
    run = recorded("checkpointed")
    (finding,) = findings(run, "launch-bound")
    assert "for layer in layers:\n    layer.compile()\noptimizer" in fixed(run, finding)


def test_compiled_code_that_waits_for_launches_is_led_to_graphs(recorded: Recorded) -> None:
    run = recorded("compiled")
    (finding,) = findings(run, "launch-bound")
    assert text_at(run, finding) == "compiled = torch.compile(model)"
    assert 'compiled = torch.compile(model, mode="reduce-overhead")' in fixed(run, finding)
    assert finding.fixes[0].applicability == "unsafe"


def test_a_small_batch_is_found_though_the_device_is_mostly_busy(recorded: Recorded) -> None:
    run = recorded("layernorm-finetune")
    (finding,) = findings(run, "small-batch")
    assert "DataLoader(" in text_at(run, finding)
    assert "2 * BATCH" in fixed(run, finding)
    assert finding.predicted is not None and finding.predicted.speedup > 1


def test_passes_that_only_a_backward_pass_makes_are_not_the_functions(recorded: Recorded) -> None:
    run = recorded("fp32-bert")
    for finding in findings(run, "unfused-elementwise"):
        assert "self.split(self.query(x))" not in text_at(run, finding)


def test_what_nsight_compute_counted_replaces_the_estimate(recorded: Recorded) -> None:
    run = recorded("transpose-kernel")
    profile, sources = pipeline.profile_of(run), runs.sources(run)
    lines = sources[profile.manifest.script].splitlines()
    at = {word: n for n, line in enumerate(lines, 1) for word in ("tl.load(", "tl.store(") if word in line}
    counted = KernelInside(
        "transpose_rows", "NVIDIA H200", 0.1, None, None, None,
        (
            KernelLine(profile.manifest.script, at["tl.load("], 4194304.0, 4194304.0),
            KernelLine(profile.manifest.script, at["tl.store("], 33554432.0, 4194304.0),
        ),
    ).with_texts(sources.get)  # fmt: skip
    found = diagnose(replace(profile, inside=(counted,)), sources.get).findings
    (finding,) = (finding for finding in found if finding.rule == "uncoalesced-access")
    assert finding.line == at["tl.store("] and finding.fixes
    assert "12 % of the bytes" in finding.message and "estimate" not in finding.message
    # The count goes with its lines, and the estimate speaks again once they have changed.
    script = profile.manifest.script
    lower = {**sources, script: "import math\n" + sources[script]}
    moved = diagnose(replace(profile, inside=(counted,)), lower.get).findings
    (finding,) = (finding for finding in moved if finding.rule == "uncoalesced-access")
    assert finding.line == at["tl.store("] + 1 and "12 % of the bytes" in finding.message
    changed = {file: text.replace("tl.store(target", "tl.store( target") for file, text in sources.items()}
    after = diagnose(replace(profile, inside=(counted,)), changed.get).findings
    (finding,) = (finding for finding in after if finding.rule == "uncoalesced-access")
    assert "estimate" in finding.message


#: Runs a script until its optimizer has made three steps, or to its end.
THREE_STEPS = """
import runpy, sys
from torch.optim.optimizer import register_optimizer_step_post_hook as after_each_step
steps = []
def count(optimizer, *_):
    steps.append(optimizer)
    if len(steps) == 3:
        sys.exit()
after_each_step(count)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_fixes_together_leave_a_script_that_runs(name: str, recorded: Recorded, tmp_path: Path) -> None:
    run = recorded(name)
    sources, script = runs.sources(run), runs.manifest(run).script
    made = together(pipeline.profile_of(run), pipeline.report_of(run).findings, sources.get)
    assert made.texts
    for file, text in {**sources, **made.texts}.items():
        ast.parse(text)
        few_layers = text.replace("(1024, 512, 400, 4)", "(1024, 512, 4, 4)")  # of the transpose
        (tmp_path / Path(file).name).write_text(few_layers)
    done = subprocess.run(
        [sys.executable, "-c", THREE_STEPS, str(tmp_path / Path(script).name)],
        cwd=tmp_path,
        # Compiling is torch's business, and takes minutes here.
        env={**os.environ, "TORCHDYNAMO_DISABLE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
