"""Gradients that are differentiated in their turn, as a derivative in a loss is.

Line 10: ``u = net(t)``; line 11: ``du = autograd.grad(u.sum(), t, create_graph=True)[0]``; line 12:
``loss.backward()``.
"""

from __future__ import annotations

from pathlib import Path

from tests.kineto import AUTOGRAD, MAIN, KinetoRun, approx, at_line, closed

NODE = "autograd::engine::evaluate_function: TanhBackward0"


def run_of(folder: Path, thread: int, *, create_graph: bool) -> KinetoRun:
    """``thread``: that runs the backward passes, autograd's own where there is a device."""
    run = KinetoRun(folder, 1000)
    run.line(0, 10)
    run.op("aten::tanh", 10, 20, seq=1)
    run.kernel(40, 50, launched=15)
    run.line(40, 11)
    run.op(NODE, 100, 60, thread, seq=1, fwd=1)
    run.op("TanhBackward0", 102, 56, thread, seq=1, fwd=1)
    numbers = {"seq": 5} if create_graph else {}
    run.op("aten::tanh_backward", 105, 20, thread, **numbers)
    run.kernel(130, 70, launched=110, tid=thread)
    run.line(300, 12)
    if create_graph:
        run.op(NODE, 310, 60, thread, seq=5, fwd=1 if thread == MAIN else 2)
        run.op("TanhBackwardBackward0", 312, 56, thread, seq=5, fwd=1 if thread == MAIN else 2)
        run.op("aten::mul", 315, 20, thread)
        run.kernel(340, 90, launched=320, tid=thread)
    run.line(600, 13)
    return run


def test_the_line_that_asks_for_the_gradient_has_it(tmp_path: Path) -> None:
    """And what the later backward pass does for it, as any operator of the forward."""
    profile = run_of(tmp_path, MAIN, create_graph=True).profile()
    assert at_line(profile, 10).device_ms == approx(0.05)
    asked = at_line(profile, 11)
    assert (asked.forward_ms, asked.backward_ms) == (approx(0.07), approx(0.09))
    assert at_line(profile, 12).device_ms == approx(0)
    assert closed(profile) == approx(1.0)


def test_also_where_autograd_has_a_thread_of_its_own(tmp_path: Path) -> None:
    profile = run_of(tmp_path, AUTOGRAD, create_graph=True).profile()
    assert at_line(profile, 11).forward_ms == approx(0.07)
    assert at_line(profile, 10).backward_ms == approx(0)
    assert closed(profile) == approx(1.0)


def test_other_gradients_stay_at_the_forward(tmp_path: Path) -> None:
    for thread in (MAIN, AUTOGRAD):
        profile = run_of(tmp_path / str(thread), thread, create_graph=False).profile()
        assert at_line(profile, 10).backward_ms == approx(0.07)
        assert at_line(profile, 11).device_ms == approx(0)
