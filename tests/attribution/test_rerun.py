"""A function of the script's own whose ``backward`` runs its forward pass again, and differentiates that.

Line 10: the function is applied; line 11: what it runs; line 12: ``loss.backward()``; line 13: its
``backward`` runs line 11 again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, MAIN, ZERO_US, KinetoRun, approx, at_line, closed

NODE = "autograd::engine::evaluate_function: {}Backward0"


def run_of(folder: Path, thread: int, *, often: int = 1, after: bool = False) -> KinetoRun:
    """``thread``: that runs the backward pass. ``often``: the forward pass runs line 11 so many times.
    ``after``: the backward pass goes on with line 11 once it has differentiated it."""
    run = KinetoRun(folder, 2000)
    run.line(0, 10)
    run.op("Again", 10, 190, seq=1)
    for turn in range(often):
        at = 20 + 30 * turn
        run.line(at, 11)
        run.op("aten::tanh", at + 2, 20)
        run.kernel(at + 20, 50, launched=at + 5)
    run.line(300, 12)
    run.op(NODE.format("Again"), 310, 900, thread, seq=1, fwd=1)
    run.op("AgainBackward", 312, 890, thread, seq=1, fwd=1)
    run.line(320, 13, tid=thread)
    run.op("aten::detach", 325, 5, tid=thread)
    run.line(340, 11, tid=thread)
    run.op("aten::tanh", 345, 20, thread, seq=7)
    run.kernel(370, 60, launched=350, tid=thread)
    run.line(400, 13, tid=thread)
    forward = 1 if thread == MAIN else 2
    run.op(NODE.format("Tanh"), 420, 60, thread, seq=7, fwd=forward)
    run.op("TanhBackward0", 422, 50, thread, seq=7, fwd=forward)
    run.op("aten::tanh_backward", 425, 20, tid=thread)
    run.kernel(450, 90, launched=430, tid=thread)
    if after:
        run.line(600, 11, tid=thread)
        run.op("aten::tanh", 605, 20, thread, seq=8)
        run.line(640, 13, tid=thread)
        run.op(NODE.format("Tanh"), 650, 60, thread, seq=8, fwd=forward)
    # Arrows to the backward operators tell which thread has which of torch's numbers.
    for number, (tid, start, end) in enumerate([(MAIN, 10, 310), (thread, 345, 420)]):
        at = {"pid": MAIN, "cat": "fwdbwd", "name": "x", "id": number}
        run.events.append({**at, "ph": "s", "tid": tid, "ts": ZERO_US + start})
        run.events.append({**at, "ph": "f", "tid": thread, "ts": ZERO_US + end, "bp": "e"})
    run.line(1300, 14)
    return run


@pytest.mark.parametrize("thread", [MAIN, AUTOGRAD])
def test_the_second_forward_pass_is_told_from_the_gradients(tmp_path: Path, thread: int) -> None:
    profile = run_of(tmp_path, thread).profile()
    line = at_line(profile, 11)
    assert (line.forward_ms, line.recompute_ms, line.backward_ms) == (
        approx(0.05),
        approx(0.06),
        approx(0.09),
    )
    assert closed(profile) == approx(2.0)


@pytest.mark.parametrize("other", [{"often": 3}, {"after": True}])
def test_one_of_many_steps_and_steps_back_in_time_are_other_work(
    tmp_path: Path, other: dict[str, int]
) -> None:
    line = at_line(run_of(tmp_path, MAIN, **other).profile(), 11)
    assert line.recompute_ms == 0
    assert line.backward_ms == approx(0.15)
