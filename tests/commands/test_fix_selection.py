"""Which fixes ``--diff`` and ``--write`` take, and which files may be written."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.samples import report
from warpline.commands import fix_selection
from warpline.diagnosis import recompute
from warpline.model.problem import Problem
from warpline.model.report import Edit, Finding, Fix, Measured, Plan, PlanStep, Predicted

NO_PROFILE: Any = None
EDIT = Edit("/train.py", (1, 0), (1, 0), "x")
SAFE, UNSAFE = Fix("a fix", "safe", (EDIT,)), Fix("a fix", "unsafe", (EDIT,))


def finding(name: str, speedup: float | None, measured: Measured | None = None, made: Fix = SAFE) -> Finding:
    said = Predicted(10.0, speedup, "simulated") if speedup else None
    return replace(report().findings[0], id=name, predicted=said, measured=measured, fixes=(made,))


GAINS = finding("gains", 2.0)
NOTHING = finding("nothing", 1.0)
UNKNOWN = finding("unknown", None)
PROVEN = finding("proven", 1.0, Measured(1.2, 1.1, 1.3, None, None))
REFUTED = finding("refuted", 2.0, Measured(1.0, 0.95, 1.05, None, None))
LIGHTER = finding("lighter", None, Measured(1.0, 0.97, 1.03, None, 0.5))
CHANGES_VALUES = finding("changes values", 2.0, made=UNSAFE)
EVERY = [GAINS, NOTHING, UNKNOWN, PROVEN, REFUTED, LIGHTER, CHANGES_VALUES]


def chosen(**options: bool) -> list[str]:
    found, left = fix_selection.selected(
        EVERY, argparse.Namespace(**{"all": False, "safe": False, **options})
    )
    assert len(found) + len(left) == len(EVERY)
    assert all(why for _, why in left)
    return [one.id for one in found]


def test_what_is_predicted_or_measured_to_gain_is_taken_and_a_measurement_counts_more() -> None:
    assert chosen() == ["gains", "proven", "lighter", "changes values"]


def test_what_was_measured_and_may_not_gain_is_said_so() -> None:
    (why,) = (
        why
        for one, why in fix_selection.selected(EVERY, argparse.Namespace(all=False, safe=False))[1]
        if one is REFUTED
    )
    assert why == "measured: no measurable gain (0.95 to 1.05); --all includes it"


def test_all_takes_every_one() -> None:
    assert chosen(all=True) == [one.id for one in EVERY]


def test_safe_leaves_out_what_may_change_values() -> None:
    assert chosen(safe=True) == ["gains", "proven", "lighter"]


def test_what_gains_only_after_other_fixes_is_made_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recompute, "fixes", lambda profile, finding, texts: (UNSAFE,))
    steps = [
        PlanStep(name, rule, "/train.py", line, "a fix", 9.0, 1.1, "host")
        for name, rule, line in (("gains", "full-sort", 3), ("hidden", "cat-in-loop", 5))
    ]
    planned = replace(report(), findings=(GAINS,), plan=Plan(10.0, "host", tuple(steps), 1.0))

    def later(**options: object) -> list[str]:
        asked = argparse.Namespace(**{"all": False, "safe": False, "rule": None, "line": None, **options})
        hidden = fix_selection.later(planned, NO_PROFILE, asked)
        found, left = fix_selection.selected([], asked, hidden)
        assert [one for one, _ in left] == [one for one in hidden if asked.safe]
        assert all(one.fixes == (UNSAFE,) for one in hidden)
        return [one.id for one in found]

    assert later() == []
    assert later(all=True) == later(rule=["cat-in-loop"]) == later(line=5) == ["hidden"]
    assert later(rule=["full-sort"]) == later(line=3) == later(line=5, rule=["full-sort"]) == []
    assert later(all=True, safe=True) == []
    assert fix_selection.later(replace(planned, plan=None), NO_PROFILE, argparse.Namespace(all=True)) == []


def test_only_files_below_the_project_of_the_run_are_written(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "elsewhere.py"
    (project / "src").mkdir(parents=True)
    outside.write_text("")
    link = project / "link.py"
    link.symlink_to(outside)
    fix_selection.inside(str(project / "src" / "train.py"), project)
    for path in (outside, link):
        with pytest.raises(Problem, match="was not changed"):
            fix_selection.inside(str(path), project)


@pytest.mark.parametrize("mark", ["", "pyproject.toml"])
def test_the_project_of_a_run(tmp_path: Path, mark: str) -> None:
    made_in = tmp_path / "project" / "experiments"
    run = made_in / ".warpline" / "runs" / "20261122-1"
    run.mkdir(parents=True)
    if mark:
        (tmp_path / "project" / mark).touch()
    assert fix_selection.root_of(run, "/somewhere") == (tmp_path / "project" if mark else made_in)
    assert not (tmp_path / ".warpline").exists()
    kept_elsewhere = tmp_path / "runs" / "20261122-1"
    assert fix_selection.root_of(kept_elsewhere, str(made_in)) == (tmp_path / "project" if mark else made_in)
