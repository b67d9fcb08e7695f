"""Rules run guarded; findings are filtered, merged, ranked, suppressed and keep their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.annotated import FILE, read_example
from warpline.diagnosis import diagnose
from warpline.model.profile import Profile
from warpline.model.report import Finding, Predicted
from warpline.rulekit import Context, Draft, Rule, ms
from warpline.rules import rule_named

CODE = """\
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32)  #> site loader num_workers=0
for batch in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(batch)  #> cost device_ms=10
"""


def findings(code: str = CODE, text: str | None = None, **options: object) -> tuple[Finding, ...]:
    example = read_example(code)
    now = example.text if text is None else text
    found = diagnose(example.profile, lambda path: now if path == FILE else None, **options)  # type: ignore[arg-type]
    return found.findings


class Broken(Rule):
    area = "data"

    def find(self, context: Context) -> Iterator[Draft]:
        raise IndexError("list index out of range")


class Fixed(Rule):
    """Says what it is told to."""

    area = "data"

    def __init__(self, name: str, line: int, cost_ms: float, covers: tuple[str, ...] = ()) -> None:
        self._name, self.line, self.cost_ms = name, line, cost_ms
        self.covers = covers  # type: ignore[misc]

    @property
    def name(self) -> str:
        return self._name

    def find(self, context: Context) -> Iterator[Draft]:
        place = (FILE, self.line)
        yield context.draft(place, "{a}", {"a": ms("a", self.cost_ms)}, cost_ms=self.cost_ms)


def test_a_rule_that_raises_costs_itself_and_leaves_one_note() -> None:
    example = read_example(CODE)
    good = rule_named("loader-without-workers")
    assert good is not None
    found = diagnose(example.profile, example.profile.sources.get, catalogue=(Broken(), good, Broken()))
    assert [finding.rule for finding in found.findings] == ["loader-without-workers"]
    assert len(found.notes) == 1
    assert "IndexError" in found.notes[0]


def test_what_costs_less_than_the_threshold_is_not_said() -> None:
    example = read_example(CODE)  # 50 ms a step: 1 ms counts
    rules = [Fixed("a", 5, 0.9), Fixed("b", 4, 1.1)]
    found = diagnose(example.profile, example.profile.sources.get, catalogue=rules).findings
    assert [finding.rule for finding in found] == ["b"]


def test_findings_are_ranked_by_what_they_would_save() -> None:
    example = read_example(CODE)
    rules = [Fixed("a", 5, 2), Fixed("b", 4, 20), Fixed("c", 3, 4)]
    found = diagnose(example.profile, example.profile.sources.get, catalogue=rules).findings
    assert [finding.rule for finding in found] == ["b", "c", "a"]
    assert [finding.severity for finding in found] == ["warning", "information", "hint"]
    assert [finding.predicted for finding in found] == [
        Predicted(30.0, 50 / 30, "bound"),
        Predicted(46.0, 50 / 46, "bound"),
        Predicted(48.0, 50 / 48, "bound"),
    ]


def test_what_another_rule_says_better_is_left_out() -> None:
    example = read_example(CODE)
    rules = [Fixed("a", 5, 7), Fixed("b", 5, 4, covers=("a",)), Fixed("a", 4, 3), Fixed("a", 4, 9)]
    found = diagnose(example.profile, example.profile.sources.get, catalogue=rules).findings
    assert [(finding.rule, finding.line, finding.evidence[0].value) for finding in found] == [
        ("a", 4, 9),
        ("b", 5, 4),
    ]


def test_a_small_saving_hides_no_large_one() -> None:
    example = read_example(CODE)
    rules = [Fixed("a", 5, 20), Fixed("b", 5, 4, covers=("a",))]
    found = diagnose(example.profile, example.profile.sources.get, catalogue=rules).findings
    assert [finding.rule for finding in found] == ["a", "b"]


def test_a_change_that_would_make_the_step_longer_is_no_finding() -> None:
    def predict(profile: Profile, change: object) -> Predicted | None:
        return Predicted(60.0, 50 / 60, "simulated")

    example = read_example(CODE)
    found = diagnose(example.profile, example.profile.sources.get, predict=predict)
    assert found.findings == ()
    (note,) = (note for note in found.notes if "not shown" in note)
    assert note.startswith(
        "loader-without-workers at train.py:3 is not shown: the simulated step with the change is longer"
    )


def test_a_prediction_takes_the_place_of_the_bound_and_may_fail() -> None:
    def predict(profile: Profile, change: object) -> Predicted | None:
        return Predicted(12.5, 4.0, "simulated")

    def fails(profile: Profile, change: object) -> Predicted | None:
        raise ZeroDivisionError("x")

    assert findings(predict=predict)[0].predicted == Predicted(12.5, 4.0, "simulated")
    bound = findings(predict=fails)[0].predicted
    assert bound is not None and bound.basis == "bound"


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("loader = ", "loader = ", 1),
        ("batch_size=32)", "batch_size=32)  # warpline: ignore[loader-without-workers]", 0),
        ("batch_size=32)", "batch_size=32)  # fine here  # warpline: ignore", 0),
        ("batch_size=32)", "batch_size=32)  # warpline: ignore[sync-in-step]", 1),
        ("loader = ", "# warpline: ignore[sync-in-step, loader-without-workers]\nloader = ", 0),
        ("in loader:", "in loader:  # warpline: ignore[loader-without-workers]", 0),
        ("loader = ", "# warpline: ignore-file[loader-without-workers]\n\nloader = ", 0),
        ("    train", "    # warpline: ignore[loader-without-workers]\n    train", 1),
        ("batch_size=32)", 'batch_size="# warpline: ignore")', 1),
    ],
)
def test_suppression_by_comment(old: str, new: str, count: int) -> None:
    example = read_example(CODE)
    assert len(findings(text=example.text.replace(old, new))) == count


def test_suppression_by_settings() -> None:
    assert findings(ignore=("loader-without-workers",)) == ()
    assert len(findings(ignore=("sync-in-step",))) == 1


def test_a_rule_that_is_not_there_cannot_be_ignored() -> None:
    example = read_example(CODE)
    found = diagnose(example.profile, lambda path: example.text, ignore=("sync-in-step", "sync-in-steps"))
    assert found.notes == ("the project's settings ignore sync-in-steps, but no rule has that name",)


def test_a_comment_that_names_no_rule_is_noted() -> None:
    example = read_example(CODE)
    text = example.text.replace("batch_size=32)", "batch_size=32)  # warpline: ignore[loader-without-worker]")
    found = diagnose(example.profile, lambda path: text)
    assert len(found.findings) == 1
    assert found.notes == (
        f"a comment in {Path(FILE).name} ignores loader-without-worker, but no rule has that name",
    )


def test_ids_stay_the_same_after_edits_elsewhere() -> None:
    example = read_example(CODE)
    (before,) = findings()
    moved = '"""A docstring."""\nimport os\n\n' + example.text + "\nprint('done')\n"
    (after,) = findings(text=moved)
    assert after.id == before.id
    assert after.line == before.line + 3
    assert before.id.startswith("loader-without-workers-")


def test_equal_lines_have_ids_of_their_own() -> None:
    twice = CODE + "\n" + CODE.split("\n", 2)[2]
    example = read_example(twice)
    lines = [n for n, line in enumerate(example.text.splitlines(), 1) if line.startswith("loader")]
    rules = [Fixed("a", line, 5) for line in lines]
    found = diagnose(example.profile, example.profile.sources.get, catalogue=rules).findings
    assert len({finding.id for finding in found}) == 2


def test_a_source_that_does_not_parse_leaves_one_note_and_the_finding() -> None:
    example = read_example(CODE)
    broken = example.text + "def f(:\n"
    found = diagnose(example.profile, lambda path: broken if path == FILE else None)
    assert [finding.rule for finding in found.findings] == ["loader-without-workers"]
    assert found.findings[0].fixes == ()
    assert len([note for note in found.notes if "parsed" in note]) == 1


def test_a_source_that_is_gone_takes_the_fix_with_it() -> None:
    example = read_example(CODE)
    (finding,) = diagnose(example.profile, lambda path: None).findings
    assert finding.fixes == ()
    assert "No edit is offered" in finding.message


def test_nothing_about_gpus_from_a_cpu() -> None:
    code = """\
#> device kind=cpu name=CPU; totals idle_ms=8
for images in loader:
    loss = train(images)  #> cost device_ms=12 idle_ms=8 step_ms=20
    print(loss.item())  #> cost cpu_ms=9 sync_ms=9
"""
    assert findings(code) == ()
    assert len(findings(code.replace("kind=cpu", "kind=cuda"))) == 1


def test_a_trace_without_lines_needs_no_rule() -> None:
    empty = replace(read_example("#> device kind=cuda\n").profile, lines=(), sources={})
    found = diagnose(empty, {}.get, ["no-such-rule"], catalogue=(Broken(),))
    assert (found.findings, len(found.notes)) == ((), 1)
    ranks = replace(empty, manifest=replace(empty.manifest, world_size=2))
    assert "collectives were not recorded" in "".join(diagnose(ranks, {}.get).notes)
