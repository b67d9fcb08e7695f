"""What must hold for the runs that have a test of their own, recorded ones and fresh ones alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.captures.record import APART
from tests.gpu import claims
from warpline import pipeline, runs
from warpline.model.report import Report

Claim = Callable[[str, Callable[[str], Path]], None]

OF_ALL: list[Claim] = [
    claims.test_lines_make_the_step,
    claims.test_device_time_is_attributed,
    claims.test_kernels_make_the_total_of_torch_profiler,
    claims.test_no_time_stands_where_a_function_begins,
]


def line_with(mark: str) -> int:
    """The line of the ranks' script with ``mark`` in it."""
    lines = APART["nccl"].read_text().splitlines()
    (number,) = (n for n, text in enumerate(lines, 1) if mark in text)
    return number


def exchanges_are_on_the_lines_that_cause_them(name: str, run_of: Callable[[str], Path]) -> None:
    exchanging = {
        line.line
        for line in _report(name, run_of).lines
        if any("nccl" in kernel.name.lower() for kernel in line.kernels)
    }
    # Of the model's gradients where it is called, as all that its backward pass does; and the script's own.
    assert exchanging == {line_with("= torch.special.i0"), line_with("# only: an exchange")}


def exchanges_are_a_kind_of_time_of_their_own(name: str, run_of: Callable[[str], Path]) -> None:
    profile = pipeline.profile_of(run_of(name))
    for cost in profile.lines:
        exchanged = sum(kernel.device_ms for kernel in cost.kernels if "nccl" in kernel.name.lower())
        assert abs(cost.communication_ms - exchanged) < 1e-6
    exposed = profile.totals["exposed_communication_ms"]
    assert 0.1 * profile.steps.step_ms < exposed < profile.totals["communication_ms"]


def work_is_on_its_line_also_when_ranks_exchange(name: str, run_of: Callable[[str], Path]) -> None:
    users = [
        line.line
        for line in _report(name, run_of).lines
        if "aten::special_i0" in {op.name for op in line.ops}
    ]
    assert users == [line_with("# only: aten::special_i0")]


def what_nothing_hides_of_the_exchange_is_found(name: str, run_of: Callable[[str], Path]) -> None:
    report = _report(name, run_of)
    (finding,) = (one for one in report.findings if one.rule == "exposed-communication")
    assert finding.line == line_with("= DistributedDataParallel(")
    assert finding.cause.line == line_with("= torch.special.i0")


def a_scale_in_float64_is_no_computation_in_it(name: str, run_of: Callable[[str], Path]) -> None:
    """DDP divides float32 gradients by a float64 number."""
    assert "float64-on-device" not in {finding.rule for finding in _report(name, run_of).findings}


def every_rank_is_known(name: str, run_of: Callable[[str], Path]) -> None:
    run = run_of(name)
    assert runs.manifest(run).world_size == 2
    assert _report(name, run_of).environment.device.count == 2
    assert "collective_wait_ms" in pipeline.profile_of(run).totals


def nothing_is_found(name: str, run_of: Callable[[str], Path]) -> None:
    claims.test_nothing_is_found_in_a_well_made_script(name, run_of)


def replayed_kernels_are_led_back(name: str, run_of: Callable[[str], Path]) -> None:
    """torch.compile knows what it recorded. The two towers are alike, and all but the whole model."""
    report = _report(name, run_of)
    assert not any("replayed CUDA graphs" in note for note in report.notes)
    text = APART[name].read_text().splitlines()
    encoder, decoder = (
        line
        for part in ("self.encoder(x)", "self.decoder(z)")
        for line in report.lines
        if part in text[line.line - 1]
    )
    for phase in ("forward_ms", "backward_ms"):
        assert abs(getattr(encoder, phase) / getattr(decoder, phase) - 1) < 0.1
    assert encoder.step_ms + decoder.step_ms > 0.7 * report.steps.step_ms


def _report(name: str, run_of: Callable[[str], Path]) -> Report:
    return pipeline.report_of(run_of(name))


CLAIMS: dict[str, list[Claim]] = {
    "nccl": [
        *OF_ALL,
        exchanges_are_on_the_lines_that_cause_them,
        exchanges_are_a_kind_of_time_of_their_own,
        work_is_on_its_line_also_when_ranks_exchange,
        what_nothing_hides_of_the_exchange_is_found,
        a_scale_in_float64_is_no_computation_in_it,
        every_rank_is_known,
    ],
    "vae": [*OF_ALL, nothing_is_found, replayed_kernels_are_led_back],
}
