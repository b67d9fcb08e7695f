"""Two runs side by side: lines are found again where they moved, and the sums agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import samples
from warpline.model.report import Report, Unattributed
from warpline.view.compare import Comparison, Pair, compare, match

BEFORE = samples.report()
TEXT = samples.SOURCES[samples.SCRIPT]


def after(text: str, moved: dict[int, int], **costs: float) -> tuple[Report, dict[str, str]]:
    """The report with the script's lines moved and ``lineN`` costing what is said, and its sources."""
    lines = tuple(
        replace(
            line, line=moved.get(line.line, line.line), step_ms=costs.get(f"line{line.line}", line.step_ms)
        )
        if line.file == samples.SCRIPT
        else line
        for line in BEFORE.lines
    )
    step = sum(line.step_ms for line in lines) + 0.3
    changed = replace(
        BEFORE, lines=lines, steps=replace(BEFORE.steps, step_ms=step), unattributed=Unattributed(0, 0.3)
    )
    return changed, {**samples.SOURCES, samples.SCRIPT: text}


def compared(text: str, moved: dict[int, int], **costs: float) -> Comparison:
    report, sources = after(text, moved, **costs)
    return compare(BEFORE, report, samples.SOURCES, sources)


def script_pair(found: Comparison, line: int) -> Pair:
    (pair,) = (pair for pair in found.pairs if pair.before == (samples.SCRIPT, line))
    return pair


def test_a_line_below_an_insertion_is_the_same_line() -> None:
    text = TEXT.replace("DataLoader(data)", "DataLoader(\n    data,\n    num_workers=8,\n)")
    pair = script_pair(compared(text, {5: 8, 8: 11}, line5=0.5), 5)
    assert (pair.after, pair.change, pair.before_ms, pair.after_ms) == ((samples.SCRIPT, 8), "same", 6.0, 0.5)


def test_an_edited_line_keeps_its_partner() -> None:
    pair = script_pair(compared(TEXT.replace("in loader:", "in fast_loader:"), {}, line5=1.0), 5)
    assert (pair.after, pair.change) == ((samples.SCRIPT, 5), "edited")


def test_a_line_put_under_a_with_is_the_same_line() -> None:
    old = ["for x in loader:", "    loss = net(x)"]
    new = ["for x in loader:", "    with autocast():", "        loss = net(x)"]
    assert match(old, new) == {1: (1, False), 2: (3, False)}


def test_lines_that_came_and_went() -> None:
    text = TEXT.replace("    print(loss.item())\n", "")
    report, sources = after(text, {})
    report = replace(report, lines=report.lines[:-1], steps=replace(report.steps, step_ms=9.8))
    gone = [
        pair for pair in compare(BEFORE, report, samples.SOURCES, sources).pairs if pair.change == "removed"
    ]
    assert [(pair.before, pair.after_ms) for pair in gone] == [((samples.SCRIPT, 8), 0.0)]
    came = [
        pair for pair in compare(report, BEFORE, sources, samples.SOURCES).pairs if pair.change == "added"
    ]
    assert [(pair.after, pair.before_ms) for pair in came] == [((samples.SCRIPT, 8), 0.0)]


def test_differences_add_up_to_the_difference_of_the_steps() -> None:
    report, sources = after("# a new head\n" + TEXT, {5: 6, 8: 9}, line5=2.25, line8=0.1)
    found = compare(BEFORE, report, samples.SOURCES, sources)
    old, new = found.unattributed
    total = sum(pair.difference_ms for pair in found.pairs) + new - old
    assert total == pytest.approx(report.steps.step_ms - BEFORE.steps.step_ms)


def test_the_same_script_in_another_folder() -> None:
    elsewhere = "/tmp/copy/train.py"
    report = replace(
        BEFORE,
        script=elsewhere,
        lines=tuple(replace(x, file=elsewhere) if x.file == samples.SCRIPT else x for x in BEFORE.lines),
    )
    found = compare(BEFORE, report, samples.SOURCES, {**samples.SOURCES, elsewhere: TEXT})
    assert script_pair(found, 5).after == (elsewhere, 5)


def test_what_makes_them_hard_to_compare_is_said() -> None:
    other = replace(BEFORE, environment=replace(BEFORE.environment, torch="2.4.0"))
    found = compare(BEFORE, other, samples.SOURCES, samples.SOURCES)
    assert found.notes == ("different torch: 2.13.0 before, 2.4.0 after",)
