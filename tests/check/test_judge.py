"""Budgets against runs: what holds, what is exceeded, what cannot be told for noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import samples
from warpline.check import budgets, judge, reading
from warpline.check.places import Run
from warpline.model.problem import Problem

STEADY = (10_000_000,) * 8
RUN = Run("now", samples.report(), samples.SOURCES, STEADY)


def faster(factor: float, name: str = "main") -> Run:
    """The same code in another run, in which everything took ``factor`` as long."""
    report = samples.report()
    lines = tuple(replace(line, step_ms=line.step_ms * factor) for line in report.lines)
    steps = replace(report.steps, step_ms=report.steps.step_ms * factor)
    return Run(name, replace(report, lines=lines, steps=steps), samples.SOURCES, STEADY)


def read(tmp_path: Path, text: str) -> budgets.Budgets:
    (tmp_path / "budgets.toml").write_text(text)
    return budgets.read(tmp_path / "budgets.toml")


def judged(
    tmp_path: Path, text: str, baseline: tuple[Run, ...] = (), runs: tuple[Run, ...] = (RUN,)
) -> list[judge.Verdict]:
    return judge.judge(read(tmp_path, text), runs, baseline)


def test_each_limit_has_a_verdict(tmp_path: Path) -> None:
    found = judged(
        tmp_path,
        """
        [step]
        max_ms = 9
        [[function]]
        name = "Net.forward"
        max_ms = 3.6
        max_percent = 34
        [[line]]
        file = "train.py"
        text = "print(loss.item())"
        max_ms = 0.5
        [[line]]
        file = "model.py"
        line = 3
        max_percent = 19
        """,
    )
    assert [(one.budget, one.outcome, round(one.ms, 6)) for one in found] == [
        ("step", "exceeded", 10.0),
        ("function Net.forward", "held", 3.5),
        ("function Net.forward", "exceeded", 3.5),  # 35 % of the step
        ("line train.py:8", "held", 0.4),
        ("line model.py:3", "exceeded", 2.0),
    ]
    assert (found[0].file, found[0].line) == (samples.SCRIPT, 1)
    assert (found[1].file, found[1].line) == (samples.MODEL, 2)  # its def
    assert "takes 10.0 ms of a step; its budget is at most 9.00 ms" in found[0].message


RELATIVE = """
    [step]
    max_increase_percent = 5
    [[line]]
    file = "train.py"
    text = "for x, y in loader:"
    max_increase_percent = 10
    """


@pytest.mark.parametrize(("factor", "outcome"), [(0.8, "exceeded"), (0.99, "held"), (2.0, "held")])
def test_relative_to_a_stored_run(tmp_path: Path, factor: float, outcome: str) -> None:
    found = judged(tmp_path, RELATIVE, (faster(factor),))
    assert [one.outcome for one in found] == [outcome, outcome]
    assert found[0].baseline_ms == pytest.approx(10 * factor)
    assert found[0].limit_ms == pytest.approx(10 * factor * 1.05)


def test_a_difference_within_the_noise_of_several_runs_fails_nobody(tmp_path: Path) -> None:
    restless = tuple(faster(factor, str(factor)) for factor in (0.7, 1.2, 0.9))  # 10 % below on average
    assert [one.outcome for one in judged(tmp_path, RELATIVE, restless)] == ["unsure", "held"]
    steady = tuple(faster(factor, str(factor)) for factor in (0.79, 0.8, 0.81))
    assert [one.outcome for one in judged(tmp_path, RELATIVE, steady)] == ["exceeded", "exceeded"]


def test_the_noise_of_a_single_run_is_that_of_its_steps(tmp_path: Path) -> None:
    restless = replace(RUN, timed_ns=tuple(round(ms * 1e6) for ms in (7, 13, 8, 12, 9, 11, 10)))
    limit = "[step]\nmax_ms = 9\n"
    assert judged(tmp_path, limit, runs=(restless,))[0].outcome == "unsure"
    assert judged(tmp_path, limit)[0].outcome == "exceeded"
    assert judged(tmp_path, f"noise_percent = 12\n{limit}")[0].outcome == "unsure"


def test_one_slow_step_excuses_no_other() -> None:
    assert reading.of_steps([10_000_000] * 9 + [900_000_000]) == 0
    assert reading.of_steps([10_000_000, 20_000_000]) == 0  # two steps tell nothing


def test_a_line_is_found_again_in_the_baseline_where_it_moved(tmp_path: Path) -> None:
    moved = {**samples.SOURCES, samples.SCRIPT: "import torch\n" + samples.SOURCES[samples.SCRIPT]}
    report = samples.report()
    lines = tuple(
        replace(line, line=line.line + (line.file == samples.SCRIPT), step_ms=line.step_ms / 2)
        for line in report.lines
    )
    before = Run("before", replace(report, lines=lines), moved, STEADY)
    found = judged(tmp_path, RELATIVE, (before,))
    assert found[1].baseline_ms == pytest.approx(3.0)
    assert found[1].outcome == "exceeded"


def test_what_the_baseline_lacks_is_said(tmp_path: Path) -> None:
    older = replace(faster(0.5), sources={**samples.SOURCES, samples.SCRIPT: "import torch\n"})
    found = judged(tmp_path, RELATIVE, (older,))
    assert found[1].outcome == "unknown"
    assert found[1].message.endswith("but the baseline does not have it")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no budget"),
        ("[step]\n", "step has no limit"),
        ("[step]\nmax_mss = 3\n", "step has an unknown key max_mss"),
        ("baselin = 'x'\n", "it has an unknown key baselin"),
        ("[[line]]\ntext = 'x'\n", "line[0] lacks the key file"),
        ("[step]\nmax_ms = -1\n", "step.max_ms must be a number above 0"),
        ("[step]\nmax_percent = 5\n", "always 100 %"),
        ("[step\n", "not valid TOML"),
        ("[[line]]\nfile = 'a.py'\nmax_ms = 1\n", "needs either text or line"),
        ("[[function]]\nname = 'gone'\nmax_ms = 1\n", "no function of the run is called gone"),
        ("[[line]]\nfile = 'gone.py'\nline = 1\nmax_ms = 1\n", "no file of the run is called gone.py"),
        ("[[line]]\nfile = 'train.py'\nline = 99\nmax_ms = 1\n", "train.py has no line 99"),
        (
            "[[line]]\nfile = 'train.py'\ntext = 'x = 1'\nmax_ms = 1\n",
            "no line of train.py has the text 'x = 1'",
        ),
        ("[[line]]\nfile = 'model.py'\ntext = ''\nmax_ms = 1\n", "needs either text or line"),
        ("[step]\nmax_increase_percent = 5\n", "give a baseline with --against"),
    ],
)  # fmt: skip
def test_a_budget_that_watches_nothing_is_a_problem_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Problem, match=said.replace("[", r"\[")) as problem:
        judged(tmp_path, text)
    assert problem.value.status == 2
    assert "\n" not in str(problem.value)


def test_lines_that_say_the_same_are_told_apart_by_their_function(tmp_path: Path) -> None:
    twice = "def one():\n    step()\n\ndef two():\n    step()\n"
    run = replace(RUN, sources={**samples.SOURCES, "/home/ada/work/twice.py": twice})
    limit = "[[line]]\nfile = 'twice.py'\ntext = 'step()'\nmax_ms = 1\n"
    with pytest.raises(Problem, match=r"several lines of twice.py have the text 'step\(\)' \(2, 5\)"):
        judged(tmp_path, limit, runs=(run,))
    (found,) = judged(tmp_path, f"{limit}function = 'two'\n", runs=(run,))
    assert (found.line, found.outcome) == (5, "held")
