"""The script that is made of a notebook's cells."""

from __future__ import annotations

import ast

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from warpline.model.problem import Problem
from warpline.notebook.code import Cell, Script, script

BEFORE = [
    Cell(1, "%matplotlib inline\nimport math"),
    Cell(2, "\n\ntext = '''\n!kept\n%kept'''\nif text:\n    !ls \\\n      -l\n    value = 2"),
    Cell(3, "%%bash\nrm -r /"),
    Cell(4, "%%time\nvalue += 1"),
    Cell(5, "%%warpline\nvalue = 'never here'"),
    Cell(7, "math?"),
]
PROFILED = Cell(8, "\nresult = value * 2\nassert text.count('kept') == 2\ndisplay(result)\n")


def made(*before: Cell, profiled: Cell = PROFILED) -> Script:
    return script(before, profiled, TransformerManager().transform_cell)


def test_it_runs_what_is_python_and_nothing_else() -> None:
    found = made(*BEFORE)
    names: dict[str, object] = {}
    exec(found.text, names)
    assert names["result"] == 6


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("import math", "Cell [1]:2"),
        ("text = '''", "Cell [2]:3"),
        ("value += 1", "Cell [4]:2"),
        ("result = value * 2", "Cell [8]:3"),  # %%warpline is line 1, then an empty one
    ],
)
def test_its_lines_have_their_places_in_the_cells(code: str, place: str) -> None:
    found = made(*BEFORE)
    assert found.place(found.text.split("\n").index(code) + 1) == place


def test_the_profiled_cell_begins_at_its_line() -> None:
    found = made(*BEFORE)
    later = [node for node in ast.parse(found.text).body if node.lineno >= found.first_line]
    assert [type(node).__name__ for node in later] == ["Assign", "Assert", "Expr"]


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        (Cell(3, "import os\nfiles = !ls"), r"Cell \[3\]:2 uses the result of a magic"),
        (Cell(3, "print(1))"), r"Cell \[3\]:1 is not plain Python"),
        (Cell(3, "import asyncio\nawait asyncio.sleep(0))"), "awaits at its top"),
    ],
)
def test_what_cannot_be_repeated_is_said_with_its_place(cell: Cell, complaint: str) -> None:
    with pytest.raises(Problem, match=complaint):
        made(cell)


def test_an_empty_cell_is_refused() -> None:
    with pytest.raises(Problem, match="nothing to profile"):
        made(profiled=Cell(8, "\n"))
