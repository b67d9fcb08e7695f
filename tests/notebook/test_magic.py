"""A notebook with ``%%warpline``, run by nbclient in a real kernel."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import environment

pytestmark = pytest.mark.process

CELLS = [
    "%load_ext warpline\nimport os\nos.environ['OMP_NUM_THREADS'] = '1'",
    "import torch\n\nmodel = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)",
    # Steps of an earlier cell, which must not be taken for the profiled one's; and a file it leaves.
    "for _ in range(40):\n    optimizer.zero_grad()\n    model(torch.ones(2, 256)).sum().backward()\n"
    "    optimizer.step()\nopen('runs.txt', 'a').write('x')\n!true",
    "raise KeyError('left out')",
    "%%warpline --steps 3\n\nfor _ in range(400):\n    optimizer.zero_grad()\n"
    "    loss = model(torch.randn(64, 256)).pow(2).mean()\n    loss.backward()\n    optimizer.step()",
    "%%warpline --skip 3\nproduct = torch.eye(400)\nfor _ in range(2):\n    product = product @ product",
    "%%warpline --stepz 3\nmodel(1)",
    "'loss' in globals(), 'product' in globals(), open('runs.txt').read()",
    "def train(steps):\n    for _ in range(steps):\n        optimizer.zero_grad()\n"
    "        model(torch.randn(64, 256)).pow(2).mean().backward()\n        optimizer.step()",
    "import warpline\nwith warpline.profile(few=12) as run:\n    train(12)",
    "import os.path\nrun.path.parent.name, len(run.report().lines)",
]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("notebook")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    client = NotebookClient(
        book, timeout=180, allow_errors=True, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute(env=environment(JPY_SESSION_NAME=str(folder / "train.ipynb")))
    assert [cell["execution_count"] for cell in book.cells] == [*range(1, len(CELLS) + 1)]
    assert (folder / ".warpline/notebooks/train.ipynb.py").is_file()
    return [cell["outputs"] for cell in book.cells]


def shown(outputs: list[Any]) -> dict[str, str]:
    made = [one["data"] for one in outputs if one["output_type"] == "display_data"]
    assert len(made) == 1, outputs
    return dict(made[0])


def said(outputs: list[Any]) -> str:
    return "".join(one["text"] for one in outputs if one["output_type"] == "stream")


def test_the_steps_of_the_cell_are_shown_by_its_lines(cells: list[Any]) -> None:
    table = shown(cells[4])["text/plain"]
    found = re.findall(r"^Cell \[(\d+)\]:(\d+) .* % +(.*)$", table, re.MULTILINE)
    code = CELLS[4].split("\n")
    assert {(int(cell), code[int(line) - 1].strip()) for cell, line, _ in found} == {
        (5, text) for *_, text in found
    }
    assert len(found) >= 3
    assert "3 steps captured" in table
    page = shown(cells[4])["text/html"]
    assert "Cell [5]:5" in page
    assert "<script" not in page
    assert len(page) < 60_000


def test_a_cell_without_steps_is_measured_as_a_whole(cells: list[Any]) -> None:
    table = shown(cells[5])["text/plain"]
    assert table.startswith("the cell as a whole")
    assert "Cell [6]:4" in table
    assert "Cell [2]" not in table.split("Findings")[0], "what earlier cells took is not the cell's"


def test_a_wrong_option_is_one_line(cells: list[Any]) -> None:
    assert said(cells[6]).startswith("warpline: unrecognized arguments: --stepz 3")
    assert len(said(cells[6]).splitlines()) == 1


def test_the_kernel_is_as_it_was(cells: list[Any]) -> None:
    """The profiled cells ran elsewhere; cell 3 ran here, and before cell 5, which may take two runs."""
    here = cells[7][0]["data"]["text/plain"]
    assert here.startswith("(False, False, 'xx")
    assert here in ("(False, False, 'xx')", "(False, False, 'xxx')")


def test_a_block_is_measured_in_the_kernel(cells: list[Any]) -> None:
    found = re.findall(r"^Cell \[(\d+)\]:(\d+) .* % +(.*)$", shown(cells[9])["text/plain"], re.MULTILINE)
    code = CELLS[8].split("\n")
    assert ("9", "4", code[3].strip()) in found
    assert {cell for cell, *_ in found} <= {"9", "10"}
    assert said(cells[9]) == ""
    assert cells[10][0]["data"]["text/plain"].startswith("('runs', ")
