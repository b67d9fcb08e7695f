"""The printed report: what stands where, plain when piped."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from tests import samples
from warpline.model.report import Report
from warpline.terminal import compare as terminal_compare
from warpline.terminal import report as terminal_report
from warpline.view.compare import compare


def printed(capsys: pytest.CaptureFixture[str], report: Report) -> str:
    terminal_report.show(Path("RUN"), report, samples.profile())
    return capsys.readouterr().out


def test_summary_lines_findings_and_limits_in_this_order(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, samples.report())
    order = (
        "train.py --epochs 1",
        "10.0 ms a step, measured without the profiler; 15.0 ms with it (50 % slower)",
        "device busy 35 % of the step; 5 steps captured",
        "<module>  train.py:5  6.40 ms, 64 %",
        "for x, y in loader:",
        "Net.forward  model.py:3",
        "h = self.a(x)",
        "[b]load[/b]: 6.00 ms, 60 % of the step; 1 a step",
        "net: forward: 2.00 ms, 20 % of the step; device 1.50 ms; 1 a step",
        "lines 3 and 7 to 8 of model.py run as one kernel: 1.25 ms (forward, triton_poi_fused_add)",
        "▲ train.py:4  loader-without-workers",
        "seen at train.py:5",
        "exposed wait 60 % of step; wait 6.00 ms",
        "predicted: 4.00 ms a step, 2.50x (simulated)",
        "fix: Add num_workers=8 (values stay the same)",
        "measured: 1.04x (1.03 to 1.05), loss drifts by 0",
        "Not attributed to any line: 0.10 ms (1.0 % of the step)",
        "Note: the clocks were throttled",
    )
    places = [text.find(words) for words in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)


def test_a_costed_line_shows_cost_share_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = (line for line in printed(capsys, samples.report()).splitlines() if "in loader:" in line)
    assert row.split() == ["5", "6.00", "60", "%", "███▋", "6.00", "for", "x,", "y", "in", "loader:"]


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, samples.report())
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_terminal_gets_colours(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "warpline.terminal.console.Console",
        lambda **options: Console(**{**options, "force_terminal": True, "width": 70}),
    )
    text = printed(capsys, samples.report())
    assert "\x1b[1;31m" in text
    assert " idle" not in text  # too narrow for the columns


def test_nothing_found_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "No findings" in printed(capsys, samples.report(findings=()))


def test_markup_and_escapes_of_a_stranger_stay_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, samples.report(argv=("[red]x[/red]", "\x1b[2J"), notes=("[link=file:///]y",)))
    assert "[red]x[/red]" in text
    assert "[link=file:///]y" in text
    assert "\x1b" not in text


def test_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(samples.report(), samples.report(), samples.SOURCES, samples.SOURCES)
    terminal_compare.show(found, Path("a"), Path("b"), top=1)
    text = capsys.readouterr().out
    assert "10.0 ms a step before, 10.0 ms after: 1.00x" in text
    assert "3 more lines differ by less" in text
