"""A line that calls ``generate``: its passes in the table, on the card and page, and in the tree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests import samples
from warpline.html.page import page
from warpline.model.report import Inside, Line, Passes, Report, Tokens
from warpline.terminal import report as terminal_report
from warpline.view.anchor_lines import Standing
from warpline.view.hover import card
from warpline.view.inside import opened
from warpline.view.table import table
from warpline.view.tokens import kinds

LIBRARY = "/venv/site-packages/transformers/gpt2.py"
PREFILL = Passes(1.0, 1.5, 1.5, 1.2, 0.3, 1.4)
DECODE = Passes(20.0, 4.0, 0.2, 0.05, 0.15, 0.18)
TOKENS = Tokens(PREFILL, DECODE, 0.42, 0.08)


def inside(
    module: str | None, line: int, step: float, device: float, prefill: float, decode: float
) -> Inside:
    made = Inside(module, LIBRARY, line, "f", step, device, 1.0, prefill_ms=prefill, decode_ms=decode)
    return replace(made, prefill_device_ms=prefill / 2, decode_device_ms=decode / 2)


ENTRIES = (
    inside("h.*.attn", 40, 4.0, 2.0, 1.0, 3.0),
    inside("h.*.mlp", 50, 1.5, 0.75, 0.5, 1.0),
    inside(None, 90, 0.5, 0.0, 0.0, 0.0),
)


def generating(tokens: Tokens = TOKENS) -> Report:
    made = samples.report()
    (first, *rest) = made.lines
    spent = PREFILL.step_ms + DECODE.step_ms + TOKENS.other_ms + TOKENS.outside_ms
    return replace(made, lines=(replace(first, step_ms=spent, inside=ENTRIES, tokens=tokens), *rest))


def said(tokens: Tokens, beside: bool) -> list[str]:
    line = replace(samples.line("f.py", 1, "f"), tokens=tokens)
    return [f"{kind.name}: {kind.about}" for kind in kinds((line,), beside)]


def test_host_and_device_time_of_a_token() -> None:
    assert said(TOKENS, True) == [
        "prefill: 1.50 ms a pass: device 1.20 ms, host 1.40 ms",
        "decode: 20 passes, 0.20 ms each: device 0.050 ms, host 0.18 ms",
        "generate itself: 0.020 ms a token",
    ]
    assert said(TOKENS, False)[1] == "decode: 20 passes, 0.20 ms each: operators 0.050 ms"


def test_a_prefill_in_few_of_the_steps() -> None:
    rare = replace(TOKENS, prefill=Passes(1 / 32, 0.05, 1.6, None, None, 1.4))
    assert said(rare, True)[0] == "prefill: a pass in 32 steps, 1.60 ms: host 1.40 ms"
    never = replace(TOKENS, prefill=Passes(0.0, 0.0, 1.6, 1.0, 0.6, None))
    assert said(never, True)[0] == "prefill: none in the timed steps, 1.60 ms: device 1.00 ms"


def test_a_line_without_a_call_of_generate_has_none() -> None:
    assert kinds(samples.report().lines, True) == ()


def test_the_terminal_has_them_beneath_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    terminal_report.show(Path("RUN"), generating(), samples.profile())
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if "in loader:" in line)
    assert [line.split()[3:5] for line in lines[at + 1 : at + 4]] == [
        ["├", "prefill"], ["├", "decode"], ["├", "generate"],
    ]  # fmt: skip
    assert lines[at + 2].split()[:3] == ["4.00", "40", "%"]


def test_a_line_that_takes_little_itself_is_shown_for_its_tokens() -> None:
    made = generating()
    little = (replace(made.lines[0], step_ms=0.001, inside=()), *made.lines[1:])
    rows = [
        row
        for function in table(replace(made, lines=little), samples.profile()).functions
        for row in function.rows
    ]
    assert any(row.tokens for row in rows)


def test_the_card_and_the_page_have_them() -> None:
    made = generating()
    words = "20 passes, 0.20 ms each: operators 0.050 ms"
    shown = card(Standing(0, (made.lines[0],), False), made)
    beside = made.environment.device.kind != "cpu"
    words = said(TOKENS, beside)[1].partition(": ")[2]
    assert words in shown
    assert f"decode: {words}" in page(made, samples.profile())


def adds_up(entries: tuple[object, ...], line: Line) -> None:
    assert sum(entry.step_ms for entry in entries) == pytest.approx(line.step_ms)  # type: ignore[attr-defined]


def test_the_tree_opens_prefill_and_decode_to_their_modules() -> None:
    line = generating().lines[0]
    entries = opened((line,), 10.0)
    assert [(entry.name, round(entry.step_ms, 6)) for entry in entries] == [
        ("prefill", 1.5), ("decode", 4.0), ("generate itself", 0.5),
    ]  # fmt: skip
    adds_up(entries, line)
    (layers,) = entries[1].entries
    assert [(each.name, round(each.step_ms, 6)) for each in layers.entries] == [("attn", 3.0), ("mlp", 1.0)]


def test_a_line_whose_passes_run_the_user_s_own_lines_opens_as_others_do() -> None:
    line = replace(generating().lines[0], step_ms=3.0)
    assert all(entry.name != "decode" for entry in opened((line,), 10.0))
