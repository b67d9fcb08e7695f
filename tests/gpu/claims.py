"""What must hold for a run on a GPU: fresh ones by `make gpu-test`, the recorded ones everywhere.

``run_of(name)`` is the folder of the run of a script (tests/captures/record.py has their names). Ground
truth comes from marks in the scripts, and from the trace as torch.profiler wrote it:
``# only: aten::silu`` no other line uses that operator; ``# kernel: gelu`` a kernel with that in its name
belongs to the line; ``# planted: 8`` so many milliseconds of each step the device waits for that line.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.captures.record import WELL_MADE, scripts
from warpline import pipeline, runs
from warpline.model.report import Line, Report

RunOf = Callable[[str], Path]


class Arguments(msgspec.Struct, gc=False):
    correlation: int = -1


class Event(msgspec.Struct, gc=False):
    """What is needed of an event of torch.profiler, in microseconds."""

    cat: str = ""
    name: str = ""
    ts: float = 0.0
    dur: float = 0.0
    args: Arguments = msgspec.field(default_factory=Arguments)


class Recorded(msgspec.Struct):
    baseTimeNanoseconds: int
    traceEvents: list[Event]


#: Which finding each case must have, in which file and at the line with which text.
CASES = {
    "loader-without-workers": ("loader-without-workers", "slow.py", "DataLoader(Digits"),
    "fp32-bert": ("fp32-matmul", "slow.py", "logits = model(tokens)"),
    "transpose-kernel": ("uncoalesced-access", "slow.py", "tl.store("),
    "layernorm-finetune": ("hand-written-norm", "slow.py", "return self.gamma * x + self.beta"),
    "checkpointing": ("needless-checkpointing", "checkpointing.py", "x = checkpoint(decoder"),
}
#: Times as fast per sample as the slow version, at least.
PROMISED = {
    "loader-without-workers": 2.5,
    "fp32-bert": 3.0,
    "transpose-kernel": 7.0,
    "layernorm-finetune": 1.4,
}
#: Scripts of which a claim below or in apart.py is about findings.
JUDGED = frozenset({*CASES, *WELL_MADE, "transpose-kernel-fixed", "cuda_graph", "vae", "nccl"})
#: Replays in runs that were recorded before captures were: no line is known for them.
REPLAYED = {"cuda_graph", "cuda_graph_step"}


def _marks(pattern: str) -> list[tuple[str, int, str]]:
    """(script's name, 1-based line, what the mark says) of all marks in the scripts."""
    return [
        (name, number, mark[1])
        for name, script in scripts().items()
        for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1)
        if (mark := re.search(pattern, line))
    ]


def _line(run: Path, number: int) -> Line:
    """The costs of one line of the script."""
    script = runs.manifest(run).script
    (found,) = (line for line in pipeline.report_of(run).lines if (line.file, line.line) == (script, number))
    return found


@pytest.mark.parametrize("name", scripts())
def test_lines_make_the_step(name: str, run_of: RunOf) -> None:
    report = pipeline.report_of(run_of(name))
    assert report.environment.device.kind == "cuda"
    total = sum(line.step_ms for line in report.lines) + report.unattributed.step_ms
    assert total == pytest.approx(report.steps.step_ms, rel=0.01)


@pytest.mark.parametrize("name", scripts())
def test_device_time_is_attributed(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    unseen = name in REPLAYED and not runs.facts(run).captured_graphs
    assert pipeline.report_of(run).attributed.device_percent >= 99 or unseen


@pytest.mark.parametrize("name", scripts())
def test_kernels_make_the_total_of_torch_profiler(name: str, run_of: RunOf) -> None:
    """Within 0.1 %, over all kernels and copies that were launched in the captured steps.

    Where the device was busy for longer in a captured step than a whole step takes unrecorded, a kernel
    counts with no less than the shortest one like it: it was interrupted, or waited for another rank.
    """
    run = run_of(name)
    report, captured = pipeline.report_of(run), runs.manifest(run).captured
    path = runs.part(run, runs.TRACE)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    trace = msgspec.json.decode(text, type=Recorded)
    launches = {
        event.args.correlation
        for event in trace.traceEvents
        if event.cat in ("cuda_runtime", "cuda_driver")
        and captured[0][0] <= trace.baseTimeNanoseconds + 1000 * event.ts < captured[-1][1]
    }
    launched = [
        event
        for event in trace.traceEvents
        if event.cat in ("kernel", "gpu_memcpy", "gpu_memset") and event.args.correlation in launches
    ]
    torch_ms = sum(event.dur for event in launched) / 1000
    ours = sum(line.device_ms for line in report.lines) + report.unattributed.device_ms
    ours *= report.steps.captured
    if _busy_ms(launched) <= report.steps.step_ms * report.steps.captured:
        assert ours == pytest.approx(torch_ms, rel=0.001)
    else:
        by_name: dict[str, list[float]] = {}
        for event in launched:
            by_name.setdefault(event.name, []).append(event.dur / 1000)
        shortest_ms = sum(len(these) * min(these) for these in by_name.values())
        assert 0.999 * shortest_ms <= ours <= 1.001 * torch_ms


def _busy_ms(events: list[Event]) -> float:
    """How long at least one of them runs."""
    busy = until = 0.0
    for event in sorted(events, key=lambda event: event.ts):
        busy += max(0.0, event.ts + event.dur - max(event.ts, until))
        until = max(until, event.ts + event.dur)
    return busy / 1000


@pytest.mark.parametrize(("name", "line", "operator"), _marks(r"# only: (aten::\w+)"))
def test_an_operator_is_on_the_one_line_that_uses_it(
    name: str, line: int, operator: str, run_of: RunOf
) -> None:
    report: Report = pipeline.report_of(run_of(name))
    users = [user.line for user in report.lines if operator in {op.name for op in user.ops}]
    assert users == [line]


@pytest.mark.parametrize(("name", "line", "part"), _marks(r"# kernel: (\w+)"))
def test_a_kernel_goes_to_a_line_that_it_was_fused_from(
    name: str, line: int, part: str, run_of: RunOf
) -> None:
    kernels = {kernel.name for kernel in _line(run_of(name), line).kernels}
    assert any(part in kernel.lower() for kernel in kernels), kernels


@pytest.mark.parametrize("name", ["resnet_amp"])
def test_what_torchs_own_modules_compute_is_the_line_s_that_calls_them(name: str, run_of: RunOf) -> None:
    """A compiled nn.Sequential of the user's blocks, between a convolution and a linear layer of torch's."""
    run = run_of(name)
    lines = runs.sources(run)[runs.manifest(run).script].splitlines()
    (call,) = (at for at, line in enumerate(lines, 1) if "compiled(images" in line)
    (first,) = (at for at, line in enumerate(lines, 1) if "self.conv1(x)" in line)
    (second,) = (at for at, line in enumerate(lines, 1) if "self.conv2(h)" in line)
    counts = {
        (number, phase): sum(
            op.count
            for op in _line(run, number).ops
            if op.phase == phase and op.name in ("aten::convolution", "aten::convolution_backward")
        )
        for number in (call, first, second)
        for phase in ("forward", "backward")
    }
    blocks = 3
    for phase in ("forward", "backward"):
        assert counts[call, phase] == pytest.approx(1)
        assert counts[first, phase] == pytest.approx(blocks)
        assert counts[second, phase] == pytest.approx(2 * blocks)  # and the one beside it


@pytest.mark.parametrize("name", ["checkpointed"])
def test_recomputation_is_a_phase(name: str, run_of: RunOf) -> None:
    ((_, number, _),) = (mark for mark in _marks(r"# only: (aten::erf)\b") if mark[0] == name)
    line = _line(run_of(name), number)
    assert line.recompute_ms == pytest.approx(line.forward_ms, rel=0.2)
    assert line.backward_ms > 0


@pytest.mark.parametrize("name", ["checkpointing"])
def test_recomputation_of_compiled_code_is_one_too_at_the_same_lines(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    source = runs.sources(run)[runs.manifest(run).script].splitlines()
    (number,) = (at for at, line in enumerate(source, 1) if "scaled_dot_product_attention" in line)
    line = _line(run, number)
    assert line.recompute_ms == pytest.approx(line.forward_ms, rel=0.2)
    assert line.backward_ms > line.forward_ms


@pytest.mark.parametrize("name", scripts())
def test_no_time_stands_where_a_function_begins(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    sources = {file: text.splitlines() for file, text in runs.sources(run).items()}
    for line in pipeline.report_of(run).lines:
        if line.file in sources and line.step_ms > 0:
            assert not sources[line.file][line.line - 1].lstrip().startswith(("def ", "@")), line.line


@pytest.mark.parametrize("name", ["two_streams"])
def test_what_hides_behind_a_longer_kernel_costs_nothing(name: str, run_of: RunOf) -> None:
    ((_, number, _),) = (mark for mark in _marks(r"# only: (aten::special_i0)\b") if mark[0] == name)
    run = run_of(name)
    hidden, steps = _line(run, number), pipeline.report_of(run).steps.captured
    # The capture begins with a device that has nothing to do: in the first step it may run alone.
    alone_ms = hidden.device_ms / steps
    assert steps > 1
    assert 0 <= hidden.step_ms - hidden.idle_ms <= 1.1 * alone_ms


@pytest.mark.parametrize(("name", "line", "planted"), _marks(r"# planted: (\d+)"))
def test_a_planted_delay_lands_on_its_line(name: str, line: int, planted: str, run_of: RunOf) -> None:
    assert _line(run_of(name), line).idle_ms == pytest.approx(float(planted), rel=0.05)


@pytest.mark.parametrize(("name", "line", "_"), _marks(r"# (waits)$"))
def test_waiting_for_the_device_is_on_its_line(name: str, line: int, _: str, run_of: RunOf) -> None:
    assert _line(run_of(name), line).sync_ms > 0


@pytest.mark.parametrize("name", CASES)
def test_each_case_is_found_at_its_line(name: str, run_of: RunOf) -> None:
    rule, file, text = CASES[name]
    run = run_of(name)
    source = runs.sources(run)[runs.manifest(run).script].splitlines()
    (number,) = (number for number, line in enumerate(source, 1) if text in line)
    (finding,) = (finding for finding in pipeline.report_of(run).findings if finding.rule == rule)
    assert (Path(finding.file).name, finding.line) == (file, number)


@pytest.mark.parametrize("name", WELL_MADE)
def test_nothing_is_found_in_a_well_made_script(name: str, run_of: RunOf) -> None:
    findings = pipeline.report_of(run_of(name)).findings
    assert [(f.rule, f.line, f.message) for f in findings if f.severity != "hint"] == []


@pytest.mark.parametrize("name", ["transpose-kernel-fixed"])
def test_where_no_tensor_asks_for_gradients_nobody_is_told_of_them(name: str, run_of: RunOf) -> None:
    rules = {finding.rule for finding in pipeline.report_of(run_of(name)).findings}
    assert "grad-in-eval" not in rules


@pytest.mark.parametrize("name", ["loader-without-workers", "loader-without-workers-fixed"])
def test_what_the_script_marks_once_a_step_is_there_once_a_step(name: str, run_of: RunOf) -> None:
    counts = {mark.name: mark.count for mark in pipeline.profile_of(run_of(name)).marks}
    assert counts == dict.fromkeys(["to device", "forward", "backward", "optimizer"], 1)


@pytest.mark.parametrize("name", ["cuda_graph"])
def test_what_a_graph_replays_is_no_idle_time(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    report = pipeline.report_of(run)
    if not runs.facts(run).captured_graphs:  # recorded before captures were
        eager = sum(line.device_ms for line in report.lines)
        assert report.unattributed.device_ms > 10 * eager
        assert any("replayed CUDA graphs" in note for note in report.notes)
        assert report.unattributed.step_ms > 0.8 * report.steps.step_ms
    assert not any("no backward pass" in note for note in report.notes), "it is in the graph"
    assert sum(line.idle_ms for line in report.lines) < 0.2 * report.steps.step_ms
    rules = {finding.rule for finding in report.findings}
    assert not rules & {"launch-bound", "small-batch", "loader-without-workers"}
