"""What gains enough only together is one finding; what does not, is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example
from warpline.diagnosis import Diagnosis, diagnose, fixes
from warpline.model.change import Change, LargerBatch, Scale, Together
from warpline.model.profile import Profile
from warpline.model.report import Edit, Finding, Fix, Predicted
from warpline.rulekit import Context, Draft, Rule, ms

STEP_MS = 200.0
CODE = """\
#> steps step_ms=200
for batch in loader:
    near = window(batch)  #> cost cpu_ms=1.8 step_ms=1.8
    far = window(batch)  #> cost cpu_ms=1.6 step_ms=1.6
    train(near, far)  #> cost device_ms=190 step_ms=190
"""


class Windows(Rule):
    area = "fusion"
    drafts: Sequence[tuple[int, float, Change]] = (
        (3, 1.8, Scale(((FILE, 3),))),
        (4, 1.6, Scale(((FILE, 4),))),
    )
    edited: tuple[int, ...] = ()
    said = 1.0  # how much of the cost its evidence says

    def find(self, context: Context) -> Iterator[Draft]:
        for line, cost, change in self.drafts:
            edit = Edit(FILE, (line, 4), (line, 4), "kept_")
            yield context.draft(
                (FILE, line),
                "{spent}.",
                {"spent": ms("spent", cost * self.said)},
                cost_ms=cost,
                change=change,
                fixes=[Fix("Keep it", "safe", (edit,))] if line in self.edited else [],
            )


def predict(profile: Profile, change: Change) -> Predicted:
    changes = change.changes if isinstance(change, Together) else (change,)
    places = [place for one in changes for place in getattr(one, "places", ())]
    after = STEP_MS - sum({3: 1.8, 4: 1.6}[line] for _, line in places)
    return Predicted(after, STEP_MS / after, "simulated")


def judged(rule: Rule) -> Diagnosis:
    profile = read_example(CODE).profile
    return diagnose(profile, profile.sources.get, predict=predict, catalogue=[rule])


def test_one_finding_at_the_larger_one_names_the_other() -> None:
    found = judged(Windows())
    (one,) = found.findings
    assert (one.line, [other.line for other in one.also]) == (3, [4])
    assert one.predicted is not None
    assert one.predicted.step_ms == pytest.approx(STEP_MS - 3.4)
    assert "line 4 takes 1.60 ms more" in one.message
    assert isinstance(found.changes[one.id], Together)
    assert not found.below


def test_no_promise_beyond_the_evidence_of_all() -> None:
    rule = Windows()
    rule.said = 0.5
    found = judged(rule)
    assert not found.findings
    assert len(found.below) == 2


@pytest.mark.parametrize("change", [Scale(((FILE, 3),)), LargerBatch(2)])
def test_what_changes_the_same_line_or_all_does_not_add_up(change: Change) -> None:
    rule = Windows()
    rule.drafts = [rule.drafts[0], (4, 1.6, change)]
    assert not judged(rule).findings


def test_a_rule_s_own_severity_stays() -> None:
    class Hints(Windows):
        severity = "hint"

    assert not judged(Hints()).findings


def test_small_ones_add_up_where_their_rule_says_so() -> None:
    class Small(Windows):
        adds_up = True

    code = CODE.replace("step_ms=200", "step_ms=90").replace("190", "80")
    profile = read_example(code).profile

    def after(profile: Profile, change: Change) -> Predicted:
        count = len(change.changes) if isinstance(change, Together) else 1
        return Predicted(90 - 0.95 * count, 90 / (90 - 0.95 * count), "simulated")

    for rule, lines in ((Small(), [3]), (Windows(), [])):
        rule.drafts = [(line, 0.95, change) for line, _, change in rule.drafts]
        found = diagnose(profile, profile.sources.get, predict=after, catalogue=[rule])
        assert [one.line for one in found.findings] == lines
        assert not found.below


@pytest.mark.parametrize(("edited", "count"), [((3, 4), 2), ((3,), 0), ((), 0)])
def test_its_edit_makes_all_edits_or_none(edited: tuple[int, ...], count: int) -> None:
    rule = Windows()
    rule.edited = edited
    (one,) = judged(rule).findings
    assert [len(fix.edits) for fix in one.fixes] == ([count] if count else [])
    assert ("not all of them" in one.message) == (len(edited) == 1)


def test_edits_are_made_anew_for_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Windows()
    rule.edited = (3, 4)
    (one,) = judged(rule).findings
    profile = read_example(CODE).profile
    monkeypatch.setattr("warpline.diagnosis.recompute.rule_named", lambda name: rule)
    text = profile.sources[FILE]
    (fix,) = fixes(profile, one, lambda path: text)
    assert fix == one.fixes[0]
    gone: Finding = replace(one, also=(replace(one.also[0], line=5),))
    assert fixes(profile, gone, lambda path: text) == ()
