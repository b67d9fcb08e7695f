"""What a cost that is paid once hides, and what launch overhead does: it is told with what it saves without
that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.annotated import FILE, read_example
from warpline.diagnosis import Diagnosis, diagnose, plan
from warpline.model.change import Change, Scale, Together
from warpline.model.profile import Profile
from warpline.model.report import Predicted, Resource
from warpline.rulekit import Context, Draft, Rule, ms

CODE = """\
#> steps step_ms=50
for length in lengths:
    y = tune(x[:length])  #> cost cpu_ms=40 idle_ms=30 step_ms=30
    z = copy(y)  #> cost device_ms=20 step_ms=20
"""
WARMING, COPYING = Scale((), host=0.2), Scale((), device=0.5)


class Told(Rule):
    area = "fusion"

    def __init__(
        self, name: str, line: int, change: Change, once: str = "", hides: tuple[str, Change] | None = None
    ) -> None:
        self._name, self._line, self._change, self._once = name, line, change, once
        self._hides = hides

    @property
    def name(self) -> str:
        return self._name

    def find(self, context: Context) -> Iterator[Draft]:
        spent = {"spent": ms("spent", 20)}
        yield context.draft(
            (FILE, self._line),
            "{spent}.",
            spent,
            cost_ms=20,
            change=self._change,
            once=self._once,
            hides=self._hides,
        )


def longest(profile: Profile, change: Change) -> Predicted:
    """The host's 50 ms beside 20 ms of the device."""
    host, device = 50.0, 20.0
    for one in change.changes if isinstance(change, Together) else (change,):
        assert isinstance(one, Scale)
        host, device = host * one.host, device * one.device
    step_ms = max(host, device)
    return Predicted(step_ms, 50 / step_ms, "simulated")


def told(once: str, copying: Scale = COPYING) -> list[tuple[str, float]]:
    example = read_example(CODE)
    rules = [Told("tuned", 3, WARMING, once), Told("copied", 4, copying)]
    found = diagnose(example.profile, example.profile.sources.get, predict=longest, catalogue=rules)
    return [(one.rule, one.predicted.step_ms) for one in found.findings if one.predicted is not None]


def test_what_is_paid_once_hides_nothing() -> None:
    assert told("tuning") == [("tuned", pytest.approx(30)), ("copied", pytest.approx(40))]


def test_what_is_paid_once_at_two_lines_hides_nothing() -> None:
    example = read_example(CODE)
    half = Scale((), host=0.4)
    rules = [
        Told("tuned", 2, half, "tuning"),
        Told("tuned-again", 3, half, "tuning"),
        Told("copied", 4, COPYING),
    ]
    found = diagnose(example.profile, example.profile.sources.get, predict=longest, catalogue=rules)
    assert [one.rule for one in found.findings if one.line == 4] == ["copied"]


def test_what_is_paid_in_each_step_does_and_a_trifle_is_none() -> None:
    assert [rule for rule, _ in told("")] == ["tuned"]
    assert [rule for rule, _ in told("tuning", Scale((), device=0.999))] == ["tuned"]


def behind_launches(launching: Scale, copying: Scale = COPYING) -> Diagnosis:
    """The host sets the pace, and ``launching`` is what its fix leaves of that."""
    example = read_example(CODE)
    rules = [
        Told("launching", 3, launching, hides=("launch overhead", Scale((), host=0.0))),
        Told("copied", 4, copying),
    ]
    return diagnose(example.profile, example.profile.sources.get, predict=longest, catalogue=rules)


def test_launch_overhead_hides_nothing_that_the_device_would_save() -> None:
    found = behind_launches(Scale((), host=0.9))
    by_rule = {one.rule: one for one in found.findings}
    said = by_rule["copied"]
    assert said.predicted is not None and said.predicted.basis == "bound"
    assert said.predicted.step_ms == pytest.approx(40)
    assert said.severity == "information"  # the first thing to do is the other one
    assert "Launch overhead hides this now" in said.message and "20.0 ms" in said.message
    assert found.later == {said.id}
    assert found.below == ()


def test_a_small_saving_of_the_device_behind_launch_overhead_stays_hidden() -> None:
    found = behind_launches(WARMING, Scale((), device=0.9))
    assert [one.rule for one in found.findings] == ["launching"]
    assert [one.rule for one in found.below] == ["copied"]


def test_launch_overhead_that_is_no_finding_tells_nothing() -> None:
    found = behind_launches(Scale((), host=0.999))
    assert [one.rule for one in found.findings] == []


def test_a_plan_begins_with_what_hides_the_rest() -> None:
    class Machine:
        def __call__(self, profile: Profile, change: Change) -> Predicted:
            return longest(profile, change)

        def limit(self, profile: Profile, change: Change) -> Resource:
            return "host"

        def left(self, profile: Profile, made: Change, change: Change) -> float:
            return 1.0

        def floor_ms(self, profile: Profile) -> float:
            return 1.0

    example = read_example(CODE)
    # The fix of launching leaves 45 ms, more than the 40 that are the bound of the other one.
    found = behind_launches(Scale((), host=0.9))
    planned = plan(example.profile, found, Machine())
    assert planned is not None
    assert [(one.rule, one.step_ms) for one in planned.steps] == [("launching", pytest.approx(45))]
