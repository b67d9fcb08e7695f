"""Tensors that go through memory at a graph break, in runs built by hand (see tests/kineto.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kineto import RESUMED, KinetoRun, approx
from warpline.model.profile import Crossing

MIB = 1 << 20
BEFORE, BEHIND = "triton_poi_fused_exp_mul_0", "triton_red_fused_add_sum_0"
EVENT = {"kind": "graph_break", "line": 12, "reason": "call to print", "count": 1, "milliseconds": 0.0}


def crossed(
    folder: Path,
    *,
    before: str = BEFORE,
    behind: str = BEHIND,
    freed: float = 295.0,
    resumed: str = RESUMED,
    line: int = 12,
    within: str = "",
) -> tuple[Crossing, ...]:
    """One step: compiled code, which makes two tensors, a break on line 12, and compiled code that reads one
    of them. The other one is the function's result."""
    run = KinetoRun(folder, 1000)
    run.facts["compile_events"] = [EVENT | {"file": str(folder / "train.py"), "line": line}]
    run.line(0, 10)
    run.op("Torch-Compiled Region: 0/0", 5, 300)
    run.memory(10, 64 * MIB, 0x1000, 64 * MIB)
    run.memory(11, 32 * MIB, 0x2000, 96 * MIB)
    run.kernel(20, 200, launched=12, name=before)
    run.line(100, 12, "Net.forward")
    if within:  # the function that has the break goes on first, and computes nothing more
        run.line(110, line, within)
    run.op("Torch-Compiled Region: 1/0", 150, 100)
    run.line(155, 12, resumed)
    run.memory(160, 16 * MIB, 0x3000, 112 * MIB)
    run.kernel(220, 100, launched=170, name=behind)
    run.memory(freed, -64 * MIB, 0x1000, 48 * MIB)
    run.line(310, 20)
    run.op("aten::sum", 400, 10)
    run.kernel(420, 50, launched=402)
    run.memory(600, -32 * MIB, 0x2000, 16 * MIB)
    return run.profile().crossings


def test_what_is_freed_with_the_code_after_a_break_has_crossed_it(tmp_path: Path) -> None:
    (one,) = crossed(tmp_path)
    assert (Path(one.file).name, one.line, one.regions) == ("train.py", 12, ("0/0", "1/0"))
    assert one.bytes == 64 * MIB
    assert one.moved_ms == approx(2 * 64 * MIB / 4.8e12 * 1e3)  # the bandwidth of an H200
    assert one.device_ms == approx(0.3)


@pytest.mark.parametrize(
    "other",
    [
        {"freed": 500.0},  # a later operator read it
        {"before": "gemm"},  # a product writes its result anyway
        {"behind": "gemm"},
        {"before": "triton_per_fused_softmax_0"},  # two sums may need a kernel each
        {"resumed": "helper"},  # another compiled function
        {"line": 30},  # a break elsewhere
    ],
)
def test_what_could_not_be_handed_over_has_not_crossed(tmp_path: Path, other: dict[str, object]) -> None:
    assert crossed(tmp_path, **other) == ()  # type: ignore[arg-type]


def test_a_break_in_what_compiled_code_calls(tmp_path: Path) -> None:
    (one,) = crossed(tmp_path, line=30, within=RESUMED.replace("_12", "_30"))
    assert (one.line, one.bytes, one.regions) == (30, 64 * MIB, ("0/0", "1/0"))
