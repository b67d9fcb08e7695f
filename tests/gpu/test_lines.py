"""On a GPU: kernels on the right lines, sums that agree, idle time where it was planted. Not run yet."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

Profiled = Callable[[Path], dict[str, Any]]
SCRIPTS = Path(__file__).parent / "scripts"
EXAMPLES = [
    ROOT / "examples" / name / "slow.py"
    for name in ("loader-without-workers", "fp32-bert", "transpose-kernel", "layernorm-finetune")
]
RULES = {
    "loader-without-workers": "loader-without-workers",
    "fp32-bert": "fp32-matmul",
    "transpose-kernel": "uncoalesced-access",
    "layernorm-finetune": "hand-written-norm",
}


def line_with(script: Path, mark: str) -> int:
    (number,) = (n for n, text in enumerate(script.read_text().splitlines(), 1) if mark in text)
    return number


def cost(report: dict[str, Any], line: int) -> dict[str, Any]:
    (found,) = (entry for entry in report["lines"] if entry["line"] == line)
    return found


@pytest.mark.parametrize(
    "script", [*EXAMPLES, *sorted(SCRIPTS.glob("*.py"))], ids=lambda p: p.parent.name + p.stem
)
def test_device_time_is_attributed_and_the_lines_make_the_step(profiled: Profiled, script: Path) -> None:
    report = profiled(script)
    assert report["environment"]["device"]["kind"] == "cuda"
    assert report["attributed"]["device_percent"] >= 99
    total = sum(line["step_ms"] for line in report["lines"]) + report["unattributed"]["step_ms"]
    assert total == pytest.approx(report["steps"]["step_ms"], rel=0.01)


@pytest.mark.parametrize("name", ["channels_last", "checkpointed", "two_streams"])
def test_operators_that_one_line_uses_are_on_that_line(profiled: Profiled, name: str) -> None:
    script = SCRIPTS / f"{name}.py"
    report = profiled(script)
    for number, text in enumerate(script.read_text().splitlines(), 1):
        if only := re.search(r"# only: (aten::\w+)", text):
            users = [
                line["line"] for line in report["lines"] if only[1] in {op["name"] for op in line["ops"]}
            ]
            assert users == [number], only[1]


def test_compiled_kernels_go_to_the_lines_they_were_fused_from(profiled: Profiled) -> None:
    script = SCRIPTS / "compiled.py"
    report = profiled(script)
    for only in ("sin", "abs"):
        kernels = {k["name"] for k in cost(report, line_with(script, f"# only: {only}"))["kernels"]}
        assert any(only in name for name in kernels), kernels


def test_recomputation_is_a_phase(profiled: Profiled) -> None:
    script = SCRIPTS / "checkpointed.py"
    line = cost(profiled(script), line_with(script, "aten::erf"))
    assert line["recompute_ms"] == pytest.approx(line["forward_ms"], rel=0.2)
    assert line["backward_ms"] > 0


def test_what_hides_behind_a_longer_kernel_costs_nothing(profiled: Profiled) -> None:
    script = SCRIPTS / "two_streams.py"
    hidden = cost(profiled(script), line_with(script, "aten::special_i0"))
    assert hidden["device_ms"] > 0
    assert hidden["step_ms"] < 0.1 * hidden["device_ms"] + hidden["idle_ms"]


def test_a_planted_delay_lands_on_its_line(profiled: Profiled) -> None:
    script = SCRIPTS / "waits.py"
    report = profiled(script)
    planted = [line_with(script, "# planted"), line_with(script, "# planted") - 1]
    idle = sum(line["idle_ms"] for line in report["lines"] if line["line"] in planted)
    assert idle == pytest.approx(20.0, rel=0.05)
    assert cost(report, line_with(script, "# waits"))["sync_ms"] > 0


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.parent.name)
def test_each_case_is_found(profiled: Profiled, script: Path) -> None:
    assert RULES[script.parent.name] in {finding["rule"] for finding in profiled(script)["findings"]}
