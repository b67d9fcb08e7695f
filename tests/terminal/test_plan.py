"""The printed plan: its columns stay columns where a fix's title is long."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpline.model.report import Plan, PlanStep
from warpline.terminal import plan as terminal_plan

TITLE = "Move the computation of the attention mask out of the loop and keep it on the device between steps"
PLAN = Plan(
    12.0,
    "loader",
    (PlanStep("a1", "hand-written-attention", "/work/model.py", 31, TITLE, 9.0, 1.33, "compute"),),
    4.0,
)


@pytest.mark.parametrize("width", [60, 80, 110, 400])
def test_a_long_title_goes_on_below_in_its_own_column(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    terminal_plan.show(Path("RUN"), PLAN, ())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    table = lines[: next(at for at, line in enumerate(lines) if line.startswith("12.0 ms now"))]
    column = table[0].index("fix")
    numbers = [line[:column] for line in table]
    assert [line.split()[0] for line in numbers[1:] if line.strip()[:1].isdigit()] == ["12.0", "9.00", "4.00"]
    said = " ".join(line[column:].strip() for line in table)
    assert TITLE in " ".join(said.split())
