"""Ranks side by side."""

from __future__ import annotations

from dataclasses import replace

from tests import samples
from tests.html.test_page import block, read
from warpline.html import ranks
from warpline.html.page import page
from warpline.model.ranks import Rank
from warpline.model.report import Report


def rank(number: int, **changes: object) -> Rank:
    return Rank(
        number, samples.report(**changes), {"communication_ms": 0.0, "exposed_communication_ms": 1.25}
    )


SLOWER = replace(samples.report().steps, step_ms=12.5)


def made(*all_ranks: Rank, report: Report | None = None) -> str:
    return page(report or samples.report(), samples.profile(), beside=all_ranks)


def test_one_process_has_no_ranks() -> None:
    assert 'id="ranks"' not in made()
    assert 'href="#ranks"' not in made(rank(0))
    assert block(made(rank(0)))["ranks"] == []


def test_each_rank_has_its_step_its_bar_and_its_exchanges() -> None:
    text = made(rank(0), rank(1, steps=SLOWER))
    words = " ".join(read(text).words)
    assert "2 ranks, 11.2 ms a step on average; the slowest is rank 1 with 12.5 ms." in words
    rows = text[text.index('class="ranks"') :].split("<tr data-rank=")[1:3]
    assert "10.0 ms" in rows[0]
    assert "12.5 ms" in rows[1]
    assert all("1.25 ms" in row and row.count("<rect") >= 3 for row in rows)
    heads = text[text.index('class="ranks"') :].partition("</tr>")[0]
    assert ">exposed<" in heads
    assert ">waits<" not in heads  # no rank knows it
    assert ">exchanges<" not in heads  # as with Gloo, which has no device time
    assert text.count('href="#ranks"') == 1


def test_bars_have_one_scale() -> None:
    text = made(rank(0), rank(1, steps=SLOWER))
    # The step's 5.5 ms at the loader, of the longer step's 12.5.
    assert text[text.index('class="ranks"') :].count('width="440.00"') == 2


def test_the_script_gets_the_numbers_of_each_ranks_report() -> None:
    slow = rank(1, steps=SLOWER)
    found = block(made(rank(0), slow))["ranks"]
    assert [each["rank"] for each in found] == [0, 1]
    assert found[1]["step_ms"] == 12.5
    assert found[1]["lines"] == [
        {"file": line.file, "line": line.line, "step_ms": line.step_ms} for line in slow.report.lines
    ]


def test_ranks_that_left_nothing_are_named() -> None:
    text = ranks.section((rank(0), rank(2)), 4, None)
    assert "2 of 4 ranks have no readable run here." in text
