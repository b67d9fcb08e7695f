"""Rounds, verdicts and what a bad candidate costs. The step times here are made up so that each
verdict is certain; real processes are timed in test_real_processes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping

import pytest

from warpline.measure.candidate import Candidate
from warpline.measure.contest import measure
from warpline.measure.pairs import Limits
from warpline.measure.timed import Timed
from warpline.model.problem import Problem
from warpline.wire.run import Request

REQUEST = Request(target="/train.py")
LOSSES = (2.0, 1.9, 1.8, 1.7)


class Machine:
    """A timer: plain steps take 20 ms, changed ones what the overlay says, with some noise."""

    def __init__(self, noise: float = 0.01, losses: tuple[float, ...] = LOSSES, peak: float = 100.0) -> None:
        self.peak = peak
        self.draw, self.noise, self.losses = random.Random(7), noise, losses
        self.order: list[str] = []

    def __call__(
        self, request: Request, overlay: Mapping[str, str], limit_s: float, cancelled: object
    ) -> Timed:
        self.order.append("B" if overlay else "A")
        word = overlay.get("/train.py", "20")
        if not word[0].isdigit():
            raise Problem(word)
        scale = 1 + abs(self.draw.gauss(0, self.noise))
        return Timed(float(word) * scale, self.losses if overlay else LOSSES, self.peak if overlay else 200.0)


def candidate(word: str, **more: object) -> Candidate:
    return Candidate(("f",), "a fix", {"/train.py": word}, **more)  # type: ignore[arg-type]


def test_a_gain_is_kept_and_its_interval_holds_it() -> None:
    found = measure(REQUEST, candidate("10"), timer=Machine())
    assert found.kept
    assert found.measured is not None
    assert found.measured.low < 2.0 < found.measured.high
    assert found.measured.memory_ratio == 0.5
    assert found.measured.loss_drift == 0.0


def test_plain_and_changed_run_in_turn() -> None:
    machine = Machine()
    measure(REQUEST, candidate("10"), timer=machine)
    assert "".join(machine.order).startswith("ABABBAABBAAB")


def test_what_changes_nothing_is_not_kept() -> None:
    found = measure(REQUEST, candidate("20"), timer=Machine(noise=0.03, peak=200.0))
    assert not found.kept
    assert found.reason == "no measurable gain"


def test_half_the_memory_at_the_same_speed_is_a_gain() -> None:
    found = measure(REQUEST, candidate("20"), timer=Machine(noise=0.003))
    assert found.kept
    assert found.reason == "as fast, with 50 % of the peak memory"
    assert found.measured is not None
    assert found.measured.memory_ratio == 0.5


def test_half_the_memory_of_a_slower_script_is_none() -> None:
    found = measure(REQUEST, candidate("22"), timer=Machine(noise=0.003))
    assert not found.kept
    assert found.reason == "slower"


def test_what_is_slower_is_said_to_be() -> None:
    found = measure(REQUEST, candidate("30"), timer=Machine())
    assert not found.kept
    assert found.reason == "slower"


def test_a_faster_one_that_moves_the_loss_is_not_kept() -> None:
    found = measure(REQUEST, candidate("10"), timer=Machine(losses=(9.0, 9.0, 9.0, 9.0)))
    assert not found.kept
    assert "loss changed" in found.reason
    assert found.measured is not None


def test_one_that_crashes_costs_one_run() -> None:
    machine = Machine()
    found = measure(REQUEST, candidate("CUDA out of memory"), timer=machine)
    assert (found.kept, found.measured, found.reason) == (False, None, "CUDA out of memory")
    assert machine.order == ["A", "B"]
    assert 19 < found.baseline_step_ms < 22


def test_a_larger_batch_is_compared_per_sample() -> None:
    found = measure(REQUEST, candidate("30", work=2.0), timer=Machine())
    assert found.measured is not None
    assert 1.2 < found.measured.speedup < 1.5
    assert found.step_ms is not None
    assert 14 < found.step_ms < 16


def test_the_clock_ends_it() -> None:
    machine = Machine(noise=0.5)
    found = measure(REQUEST, candidate("20"), Limits(seconds=0.0), timer=machine)
    assert found.rounds == 2
    assert found.measured is not None


def test_one_round_bounds_nothing_and_proves_nothing() -> None:
    found = measure(REQUEST, candidate("10"), Limits(first=1), timer=Machine())
    assert found.rounds == 1
    assert not found.kept


def test_a_plain_script_that_fails_is_a_problem() -> None:
    def broken(*arguments: object) -> Timed:
        raise Problem("the script ended before one step could be timed", 1)

    with pytest.raises(Problem, match="ended before"):
        measure(REQUEST, candidate("10"), timer=broken)


def test_cancel_ends_it_between_processes() -> None:
    cancelled, machine = threading.Event(), Machine()

    def stop(done: int, total: int, message: str) -> None:
        if done >= 1:
            cancelled.set()

    with pytest.raises(Problem) as caught:
        measure(REQUEST, candidate("10"), timer=machine, on_progress=stop, cancelled=cancelled)
    assert caught.value.status == 130
    assert len(machine.order) == 4
