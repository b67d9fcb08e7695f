"""Timed steps that were slower than the captured ones: the replay says nothing then, and hides nothing."""

from __future__ import annotations

from dataclasses import replace

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import Diagnosis, diagnose
from warpline.model.change import Change
from warpline.model.profile import Profile
from warpline.model.report import Predicted

CODE = """\
#> totals idle_ms=8
for images, labels in loader:
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=3 step_ms=15
    total += loss.item()  #> cost cpu_ms=5 sync_ms=5 step_ms=5 syncs=1
"""


def nothing_gained(profile: Profile, change: Change) -> Predicted:
    return Predicted(20.0, 1.0, "simulated")


def result(slowdown: float) -> Diagnosis:
    example = read_example(CODE)
    profile = replace(example.profile, steps=replace(example.profile.steps, slowdown=slowdown))
    return diagnose(profile, texts(example), predict=nothing_gained)


def test_a_replay_of_steps_like_the_timed_ones_hides_what_gains_nothing() -> None:
    assert not result(1.2).findings
    assert [one.rule for one in result(1.2).below] == ["sync-in-step"]


def test_a_step_that_something_else_stretched_hides_nothing() -> None:
    stretched = result(0.7)
    (found,) = stretched.findings
    assert found.rule == "sync-in-step"
    assert found.predicted is not None and found.predicted.basis == "bound"
    assert "gains are upper bounds" in stretched.notes[-1]
