"""``warpline.load``: every column is described, and says what the report says."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

import pytest

import warpline
from tests.conftest import ExampleRun
from warpline.model.profile import LineCost, Profile
from warpline.model.report import Passes, Tokens
from warpline.tables import BESIDE, TABLES, Tables, of_run


@pytest.fixture(scope="module")
def tables(example_run: ExampleRun) -> Tables:
    return warpline.load(str(example_run.run))


def described(table: str) -> set[str]:
    """Columns that the docstring describes below "``table``: one row …"."""
    document = Tables.__doc__ or ""
    part = re.split(r"^    ``(\w+)``: one row", document, flags=re.MULTILINE)
    text = dict(zip(part[1::2], part[2::2], strict=True))[table]
    heads = re.findall(r"^    - ((?:``\w+``(?:, )?)+):", text, flags=re.MULTILINE)
    return {column for head in heads for column in re.findall(r"``(\w+)``", head)}


@pytest.mark.parametrize("table", TABLES + BESIDE)
def test_every_column_is_described_and_every_described_one_is_there(tables: Tables, table: str) -> None:
    assert described(table) == set(getattr(tables, table).columns)


def test_a_notebook_shows_one_line(tables: Tables) -> None:
    assert re.fullmatch(r"<Tables of /.*slow\.py, .* ms a step; rows: lines \d+, .*>", repr(tables))


def test_lines_are_the_report_s(tables: Tables) -> None:
    report = tables.report
    assert tables.lines["step_ms"].tolist() == [line.step_ms for line in report.lines]
    rest = report.unattributed.step_ms
    assert tables.lines["step_ms"].sum() + rest == pytest.approx(report.steps.step_ms)
    row = tables.lines[tables.lines["text"].str.strip() == "loss.backward()"]
    assert len(row) == 1


def test_ops_below_lines_make_their_device_time(tables: Tables) -> None:
    below = tables.ops.groupby(["file", "line"])["device_ms"].sum()
    above = tables.lines.set_index(["file", "line"])["device_ms"]
    for place, device_ms in above.items():
        if device_ms > 0.01:
            assert below[place] == pytest.approx(device_ms, rel=1e-6)


def test_steps_are_those_of_both_windows(tables: Tables) -> None:
    means = tables.steps.groupby("window")["wall_ms"].mean()
    assert means["timing"] == pytest.approx(tables.report.steps.step_ms)
    assert means["capture"] == pytest.approx(tables.report.steps.profiled_step_ms)


def test_a_table_without_rows_can_be_sorted_by_its_numbers() -> None:
    kernels = of_run.frame([], ("file", "line", *of_run.KERNEL_FIELDS))
    assert kernels.groupby("name")[["device_ms", "count"]].sum().nlargest(10, "device_ms").empty
    assert (
        of_run.frame([(1.0, None)], ("step_ms", "measured_speedup")).nlargest(1, "measured_speedup").size == 2
    )


def test_passes_of_generate_have_a_row_each() -> None:
    prefill, decode = Passes(1.0, 2.0, 2.0, 1.5, 0.5, 2.0), Passes(7.0, 3.5, 0.5, None, None, 0.4)
    lines = tuple(
        LineCost("a.py", at, "f", tokens=tokens)
        for at, tokens in ((4, None), (5, Tokens(prefill, decode, 1.0, 0.0)))
    )
    rows = list(of_run.pass_rows(cast(Profile, SimpleNamespace(lines=lines))))
    assert [(row[1], *row[3:7]) for row in rows] == [
        (5, "prefill", 1.0, 2.0, 2.0),
        (5, "decode", 7.0, 3.5, 0.5),
    ]
    assert of_run.frame(rows, of_run.PASS_COLUMNS)["pass_device_ms"].isna().tolist() == [False, True]
