"""What stands over a function: its own lines' time, and with what it calls."""

from __future__ import annotations

from pathlib import Path

from tests.lsp.folder import lines
from warpline.model.report import Function
from warpline.view.lenses import functions, of_file, of_functions, totals_of

FILE = Path("/project/train.py")
TEXT = """def step():
    x = load()  # 2 ms
    return forward(x)  # 0.5 ms


def load():
    def decode():
        return read()  # 30 ms

    return decode()  # 0.1 ms


def forward(x):
    return x @ x  # 67.4 ms
"""


def shown(known: list[Function]) -> dict[int, str]:
    with_called = {name: ms for (_, name), ms in totals_of(known).items()}
    found = functions(lines(FILE, TEXT.replace("def decode():\n", "\n")), TEXT, with_called)
    return {lens.line: lens.text for lens in of_functions(found, 100.0, None)}


def test_self_and_total_are_named() -> None:
    known = [
        Function(str(FILE), "step", 2.5, 100.0),
        Function(str(FILE), "load", 30.1, 30.1),
        Function(str(FILE), "forward", 67.4, 67.4),
    ]
    assert shown(known) == {
        0: "total 100 ms · 100 %, self 2.50 ms · 2.5 %",
        5: "self 30.1 ms · 30 %",
        12: "self 67.4 ms · 67 %",
    }


def test_a_function_that_only_calls_others_has_a_lens_all_the_same() -> None:
    text = "def main():\n    train()  # 0.2 ms\n"
    found = functions(lines(FILE, text), text, {"main": 99.0})
    assert [lens.text for lens in of_functions(found, 100.0, None)] == [
        "total 99.0 ms · 99 %, self 0.20 ms · 0.2 %"
    ]


def test_of_earlier_runs_the_total_is_not_known() -> None:
    assert shown([])[0] == "self 2.50 ms · 2.5 %"


def test_functions_within_functions_are_named_as_their_lines_are() -> None:
    known = [Function("/f.py", "load.<locals>.decode", 1.0, 2.0)]
    assert totals_of(known) == {("/f.py", "load.decode"): 2.0}


def test_of_a_file_without_time_only_the_step_is_told() -> None:
    assert of_file(0.0, 100.0, None) == "100 ms a step"
    assert of_file(25.0, 100.0, None) == "100 ms a step, 25.0 ms · 25 % in this file"
