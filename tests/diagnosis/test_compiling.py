"""A fix that compiles says how long that takes, and how many steps win it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.annotated import FILE, read_example
from warpline.diagnosis import diagnose
from warpline.model.change import Change, Scale
from warpline.model.profile import Profile
from warpline.model.report import Finding, Predicted
from warpline.rulekit import Context, Draft, Rule, ms

CODE = """\
#> steps step_ms=50
for x in batches:
    y = work(x)  #> cost device_ms=20 step_ms=20
"""


class Compiles(Rule):
    name = "compiles"
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        spent = {"spent": ms("spent", 20)}
        yield context.draft((FILE, 3), "{spent}.", spent, cost_ms=20, change=Scale((), device=0.5))


def found(compiling_s: float, saved_ms: float = 10.0) -> Finding:
    def predict(profile: Profile, change: Change) -> Predicted:
        return Predicted(50 - saved_ms, 50 / (50 - saved_ms), "probed")

    profile = read_example(CODE).profile
    diagnosis = diagnose(
        profile,
        profile.sources.get,
        predict=predict,
        compiling_s=lambda profile, change: compiling_s,
        catalogue=[Compiles()],
    )
    (one,) = (*diagnosis.findings, *diagnosis.below)
    return one


def test_the_steps_that_win_the_time_back() -> None:
    said = "20.0 ms. Compiling takes about 25 s once; about 2500 steps win that back."
    assert found(25.0).message == said
    assert [(one.value, one.unit) for one in found(25.0).evidence[1:]] == [(25.0, "s"), (2500.0, "steps")]


@pytest.mark.parametrize(("compiling_s", "saved_ms"), [(0.0, 10.0), (0.4, 10.0), (25.0, 0.0)])
def test_nothing_is_said_without_a_trial_or_a_gain(compiling_s: float, saved_ms: float) -> None:
    assert found(compiling_s, saved_ms).message == "20.0 ms."


def test_what_only_a_long_run_wins_back_is_a_hint() -> None:
    assert found(100.0).severity == "warning"  # 10000 steps of 50 ms
    assert found(200.0).severity == "hint"
