"""The code cells of a notebook as one script."""

from __future__ import annotations

import ast

import pytest

from warpline.model.problem import Problem
from warpline.notebook.exported import export, parse


def test_lines_keep_their_places() -> None:
    cells = [
        "import torch\n\n",
        "%%time\nx = 1",
        "if True:\n    !ls \\\n      -l\n    y = 5 \\\n  % 3\n",
        "%%bash\nls",
    ]
    made = export("/w/a.ipynb", cells)
    lines = made.text.split("\n")
    ast.parse(made.text)
    for part, cell in zip(made.parts, cells, strict=True):
        inside = lines[part.first - 1 : part.last]
        assert len(inside) == len(cell.split("\n"))
        assert lines[part.first - 2] == f"# %% Cell {part.number}"
    assert lines[made.parts[1].first] == "x = 1"
    assert lines[made.parts[2].first] == "    pass  # !ls \\"
    assert made.left_out == ("Cell 2:1", "Cell 3:2", "Cell 4:1")


def test_a_script_tells_its_cells() -> None:
    made = export('/w/a "b".ipynb', ["display(1)", "x = 1"])
    again = parse(made.text)
    assert again is not None and (again.notebook, again.parts) == (made.notebook, made.parts)
    for other in (
        "",
        "import torch\n",
        made.text.replace("[[", "{["),
        made.text.replace("[[", "[[Infinity, "),
        made.text.split("\n")[0],
    ):
        assert parse(other) is None


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("files = !ls", "Cell 1:1 uses the result"),
        ("await thing()\n\nx = (", "Cell 1:.* awaits at its top"),
        ("x = (", "Cell 1:1 is not plain Python"),
        ("x = 1\0", "Cell 1:1 is not plain Python"),
    ],
)
def test_what_cannot_be_a_script_is_refused_by_its_line(cell: str, said: str) -> None:
    with pytest.raises(Problem, match=said):
        export("a.ipynb", [cell])


def test_python_that_looks_like_a_magic_stays() -> None:
    for cell in ("x = (7\n% 2)\n", "x = 7 \\\n% 2\n"):
        assert cell in export("a.ipynb", [cell + "!ls"]).text
