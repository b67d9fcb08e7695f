"""Tensors that go through memory at a graph break, in runs built by hand (see tests/kineto.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, RESUMED, KinetoRun, approx
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
    begins: int = 12,
    line: int = 12,
    within: str = "",
    result: bool = True,
) -> tuple[Crossing, ...]:
    """One step: compiled code, which makes two tensors, a break on line 12, and compiled code that reads one
    of them. The other one is the function's ``result``."""
    run = KinetoRun(folder, 1000)
    run.facts["compile_events"] = [EVENT | {"file": str(folder / "train.py"), "line": line}]
    run.line(0, 10)
    run.op("Torch-Compiled Region: 0/0", 5, 300)
    run.memory(10, 64 * MIB, 0x1000, 64 * MIB)
    if result:
        run.memory(11, 32 * MIB, 0x2000, 96 * MIB)
    run.kernel(20, 200, launched=12, name=before)
    run.line(100, 12, "Net.forward")
    if within:  # the function that has the break goes on first, and computes nothing more
        run.line(110, line, within)
    run.op("Torch-Compiled Region: 1/0", 150, 100)
    run.line(155, begins, resumed)
    run.memory(160, 16 * MIB, 0x3000, 112 * MIB)
    run.kernel(220, 100, launched=170, name=behind)
    run.memory(freed, -64 * MIB, 0x1000, 48 * MIB)
    run.line(310, 20)
    run.op("aten::sum", 400, 10)
    run.kernel(420, 50, launched=402)
    if result:
        run.memory(600, -32 * MIB, 0x2000, 16 * MIB)
    return run.profile().crossings


def trained(
    folder: Path, *, kept: bool = True, last: str = "triton_red_fused_mul_sum_0", product: bool = False
) -> tuple[float, float, float]:
    """The MiB that cross a break in a step with a backward pass, what of them is written and read, and the
    code's time. ``kept``: the backward pass reads what crosses the break. ``last``: the kernel with which it
    ends. ``product``: after its first kernel the code after the break runs one."""
    run = KinetoRun(folder, 2000)
    run.facts["compile_events"] = [EVENT | {"file": str(folder / "train.py")}]
    run.line(0, 10)
    run.op("Torch-Compiled Region: 0/0", 5, 300)
    run.op("CompiledFunction", 6, 60, seq=1)
    run.memory(10, 8 * MIB, 0x1000, 0)
    run.kernel(20, 40, launched=12, name="triton_per_fused_norm_0")
    run.memory(30, 64 * MIB, 0x2000, 0)
    run.kernel(60, 40, launched=32, name=BEFORE)
    run.line(100, 12, "Net.forward")
    run.op("Torch-Compiled Region: 1/0", 150, 100)
    run.op("CompiledFunction", 152, 90, seq=2)
    run.line(155, 12, RESUMED)
    run.memory(160, 16 * MIB, 0x3000, 0)
    run.kernel(220, 40, launched=170, name="triton_red_fused_sum_0")
    if product:
        run.kernel(262, 40, launched=180)
    if not kept:
        run.memory(295, -64 * MIB, 0x2000, 0)
    run.line(310, 20)
    for start, seq in ((400, 2), (600, 1)):
        node = "CompiledFunctionBackward"
        run.op(f"autograd::engine::evaluate_function: {node}", start, 150, AUTOGRAD, seq=seq, fwd=1)
        run.op(node, start + 2, 140, AUTOGRAD, seq=seq, fwd=1)
    run.memory(410, 32 * MIB, 0x4000, 0, tid=AUTOGRAD)
    run.kernel(420, 40, launched=412, name=last, tid=AUTOGRAD)
    run.memory(610, 24 * MIB, 0x5000, 0, tid=AUTOGRAD)
    run.kernel(620, 40, launched=612, name="triton_poi_fused_mul_1", tid=AUTOGRAD)
    run.memory(745, -32 * MIB, 0x4000, 0, tid=AUTOGRAD)
    if kept:
        run.memory(746, -64 * MIB, 0x2000, 0, tid=AUTOGRAD)
    run.memory(747, -8 * MIB, 0x1000, 0, tid=AUTOGRAD)
    (one,) = run.profile().crossings or (Crossing("", 0, 0, 0, 0),)
    return one.bytes / MIB, one.saved_ms * 4.8e12 / 1e3 / MIB, one.device_ms


def test_what_backward_passes_read_and_their_gradients_cross_as_well(tmp_path: Path) -> None:
    both = (64 + 32, 2 * (64 + 32), 0.2)
    assert trained(tmp_path / "kept") == approx(both), "not what an earlier kernel keeps"
    assert trained(tmp_path / "freed", kept=False) == approx(both)


def test_next_to_a_product_one_reading_is_saved(tmp_path: Path) -> None:
    assert trained(tmp_path, product=True) == approx((64 + 32, 64 + 2 * 32, 0.24))


def test_a_gradient_that_a_product_makes_has_not_crossed(tmp_path: Path) -> None:
    assert trained(tmp_path, last="gemm") == approx((64, 2 * 64, 0.2))


def test_what_is_freed_with_the_code_after_a_break_has_crossed_it(tmp_path: Path) -> None:
    (one,) = crossed(tmp_path)
    assert (Path(one.file).name, one.line, one.regions) == ("train.py", 12, ("0/0", "1/0"))
    assert one.bytes == 64 * MIB
    assert one.saved_ms == approx(2 * 64 * MIB / 4.8e12 * 1e3)  # the bandwidth of an H200
    assert one.device_ms == approx(0.3)


def test_one_kernel_for_two_that_compute_each_element_takes_as_long_as_the_longer(tmp_path: Path) -> None:
    (alone,) = crossed(tmp_path / "alone", behind="triton_poi_fused_add_0")
    assert alone.saved_ms == approx(2 * 64 * MIB / 4.8e12 * 1e3), "not where it returns a result, too"
    (one,) = crossed(tmp_path / "all", behind="triton_poi_fused_add_0", result=False)
    assert one.saved_ms == approx(0.1)


@pytest.mark.parametrize(
    "other",
    [
        {"freed": 500.0},  # a later operator read it
        {"before": "gemm"},  # a product writes its result anyway
        {"behind": "gemm"},
        {"before": "triton_per_fused_softmax_0"},  # two sums may need a kernel each
        {"resumed": "helper", "begins": 40},  # another compiled function
        {"line": 30},  # a break elsewhere
    ],
)
def test_what_could_not_be_handed_over_has_not_crossed(tmp_path: Path, other: dict[str, object]) -> None:
    assert crossed(tmp_path, **other) == ()  # type: ignore[arg-type]


def test_a_break_in_what_compiled_code_calls(tmp_path: Path) -> None:
    (one,) = crossed(tmp_path, line=30, within=RESUMED.replace("_12", "_30"))
    assert (one.line, one.bytes, one.regions) == (30, 64 * MIB, ("0/0", "1/0"))


@dataclass
class Code:
    """Compiled code: its first line record, whether it makes a tensor with a kernel, and what it calls."""

    line: int
    function: str
    kernel: bool = False
    inner: tuple[Code, ...] = ()
    skipped: bool = False  # Dynamo finds nothing to compile in it: only its line is recorded


def after(line: int, kernel: bool = False, *inner: Code, skipped: bool = False) -> Code:
    return Code(line, RESUMED.replace("_12", f"_{line}"), kernel, inner, skipped)


#: A function that logs on line 30, and one that calls it on line 20.
LOGS = Code(12, "helper", inner=(after(30, skipped=True),))
CALLS = Code(12, "helper", inner=(LOGS, after(20)))


def nested(folder: Path, breaks: Sequence[int], *roots: Code) -> dict[tuple[int, ...], float]:
    """``{lines of the breaks: MiB that cross there}`` in a step that runs this compiled code. What it makes
    is freed where the outermost code ends, but the last tensor, its result."""
    run = KinetoRun(folder, 3000)
    file = str(folder / "train.py")
    run.facts["compile_events"] = [EVENT | {"file": file, "line": line} for line in breaks]
    numbers, held = count(1), []

    def ran(code: Code, begun: int) -> int:
        now, number = begun + 50, next(numbers)
        run.line(begun + 5, code.line, code.function)
        if code.kernel:
            held.append(0x1000 * number)
            run.memory(begun + 10, 64 * MIB, held[-1], 0)
            run.kernel(begun + 30, 10, launched=begun + 12, name=f"triton_poi_fused_mul_{number}")
        for one in code.inner:
            now = ran(one, now)
        if not code.skipped:
            run.op(f"Torch-Compiled Region: {number}/0", begun, now + 10 - begun)
        return now + 20

    now = 0
    for root in roots:
        now = ran(root, now)
        for at, address in enumerate(held[:-1]):
            run.memory(now + 1 + at, -64 * MIB, address, 0)
        held.clear()
        run.line(now + 10, 40)
        run.op("aten::sum", now + 20, 10)
        now += 50
    found = run.profile().crossings
    return {(*(line for _, line in one.also), one.line): one.bytes / MIB for one in found}


def one_deep(helper: Code, line: int = 12) -> Code:
    return Code(10, "Net.forward", True, (helper, after(line, True)))


def test_a_break_in_a_function_however_deep_is_where_its_callers_are_cut(tmp_path: Path) -> None:
    assert nested(tmp_path / "one", [30], one_deep(LOGS)) == {(30,): 64}
    assert nested(tmp_path / "two", [30], one_deep(CALLS)) == {(30,): 64}


def test_a_function_with_a_break_that_computes_has_two_pieces_of_its_own(tmp_path: Path) -> None:
    helper = Code(12, "helper", True, (after(30, True),))
    assert nested(tmp_path, [30], one_deep(helper)) == {(30,): 3 * 64}


def test_a_break_in_a_loop_leaves_its_function_uncompiled(tmp_path: Path) -> None:
    loop = Code(30, "helper", skipped=True)  # no code goes on after line 30
    assert nested(tmp_path / "one", [30], one_deep(loop)) == {(30,): 64}
    assert nested(tmp_path / "two", [30], one_deep(Code(12, "helper", inner=(loop, after(20))))) == {
        (30,): 64
    }
    assert nested(tmp_path / "none", [20], one_deep(loop)) == {}
    went_on = Code(10, "Net.forward", True, (LOGS, after(12, True))), one_deep(loop, line=20)
    assert nested(tmp_path / "on", [30], *went_on) == {(30,): 64}, "where it does, that alone tells it"


def test_all_compiled_functions_that_call_it_count_and_other_calls_do_not(tmp_path: Path) -> None:
    calls = one_deep(LOGS), LOGS, one_deep(LOGS, line=20), Code(10, "Net.forward", True)
    assert nested(tmp_path, [30], *calls) == {(30,): 2 * 64}


def test_of_breaks_in_a_row_all_have_to_go(tmp_path: Path) -> None:
    row = Code(10, "Net.forward", True, (after(12, False, after(20, True)),))
    assert nested(tmp_path, [12, 20], row) == {(12, 20): 64}
    apart = Code(10, "Net.forward", True, (after(12, True, after(20, True)),))
    assert nested(tmp_path / "apart", [12, 20], apart) == {(12,): 64, (20,): 64}


def test_compiled_functions_that_run_one_after_the_other_have_no_break(tmp_path: Path) -> None:
    assert nested(tmp_path, [30], Code(10, "Net.forward", True), after(12, True)) == {}
