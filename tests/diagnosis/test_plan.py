"""The order of fixes, with gains that are made up: one fix hides another."""

from __future__ import annotations

from dataclasses import replace

from tests.samples import profile, report
from warpline.diagnosis import Diagnosis, plan
from warpline.model.change import Change, Scale, Together
from warpline.model.profile import Profile
from warpline.model.report import Evidence, Finding, Predicted, Resource

PROFILE, REPORT = profile(), report()
STEP_MS = PROFILE.steps.step_ms
LOADING = STEP_MS * 0.6


class Machine:
    """The step is the longer of loading and computing; ``Scale.host`` is a share of the first, ``device`` of
    the second."""

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken

    def _both(self, change: Change) -> tuple[float, float]:
        assert isinstance(change, Together)
        loading, computing = STEP_MS, LOADING
        for one in change.changes:
            assert isinstance(one, Scale)
            loading, computing = loading * one.host, computing * one.device
        return loading, computing

    def __call__(self, profile: Profile, change: Change) -> Predicted:
        if self.broken:
            raise ValueError("no replay")
        step_ms = max(self._both(change))
        return Predicted(step_ms, STEP_MS / step_ms, "simulated")

    def limit(self, profile: Profile, change: Change) -> Resource:
        loading, computing = self._both(change)
        return "loader" if loading > computing else "compute"

    def left(self, profile: Profile, made: Change, change: Change) -> float:
        loading, computing = self._both(made)
        return max(loading / STEP_MS, computing / LOADING)

    def floor_ms(self, profile: Profile) -> float:
        return 0.1


def finding(name: str, step_ms: float, lost_ms: float = STEP_MS) -> Finding:
    """``lost_ms``: its evidence."""
    said = Predicted(step_ms, STEP_MS / step_ms, "simulated")
    lost = (Evidence("spent", lost_ms, "ms"),)
    return replace(REPORT.findings[0], id=name, rule=name, predicted=said, evidence=lost)


WORKERS = finding("workers", LOADING)
HIDDEN = finding("hidden", STEP_MS)
NOTHING = finding("nothing", STEP_MS)
CHANGES: dict[str, Change] = {
    "workers": Scale((), host=0.1),
    "hidden": Scale((), device=0.5),
    "nothing": Scale((), device=0.999),
}


def test_what_was_hidden_comes_after_what_hid_it() -> None:
    found = plan(PROFILE, Diagnosis((WORKERS,), (), (HIDDEN, NOTHING), CHANGES), Machine())
    assert found is not None
    assert [one.finding for one in found.steps] == ["workers", "hidden"]
    assert [one.limit for one in found.steps] == ["compute", "compute"]
    assert found.limit == "loader"
    first, second = found.steps
    assert abs(second.step_ms - LOADING / 2) < 1e-9
    assert abs(first.speedup * second.speedup - STEP_MS / second.step_ms) < 1e-9
    assert found.floor_ms == 0.1


def test_what_the_first_fix_does_not_promise_is_not_the_second_ones_gain() -> None:
    careful = finding("workers", STEP_MS * 0.8)
    found = plan(PROFILE, Diagnosis((careful,), (), (NOTHING,), CHANGES), Machine())
    assert found is not None
    assert [one.finding for one in found.steps] == ["workers"]


def test_no_step_gains_more_than_what_is_left_of_its_evidence() -> None:
    """A fix halves all computing. Another one replays as if it took away the half of what is left, and has a
    tenth of the step to show for it, of which a half is left; what it did not gain is not the next one's."""
    halves = finding("halves", STEP_MS / 2)
    shown = finding("shown", STEP_MS * 0.9, STEP_MS / 10)
    changes: dict[str, Change] = {
        "halves": Scale((), host=0.5, device=0.5),
        "shown": Scale((), host=0.5, device=0.5),
        "nothing": Scale((), host=0.999),
    }
    found = plan(PROFILE, Diagnosis((halves, shown), (), (NOTHING,), changes), Machine())
    assert found is not None
    assert [one.finding for one in found.steps] == ["halves", "shown"]
    first, second = found.steps
    assert abs(first.step_ms - second.step_ms - STEP_MS / 20) < 1e-9


def test_without_changes_or_a_replay_there_is_no_plan() -> None:
    assert plan(PROFILE, Diagnosis((WORKERS,), ()), Machine()) is None
    assert plan(PROFILE, Diagnosis((WORKERS,), (), (HIDDEN,), CHANGES), Machine(broken=True)) is None
