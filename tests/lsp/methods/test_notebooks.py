"""Cells of a notebook that is open: profiled as one script, and shown on the cells' own lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from tests.lsp.client import Client, Error, apply, span
from tests.lsp.folder import cost, finding, write_report, write_run
from warpline.lsp.methods.notebook_script import written
from warpline.lsp.serve import build
from warpline.lsp.state.documents import Documents
from warpline.model.report import Edit, Fix, Inside
from warpline.notebook.exported import export

CELLS = (
    "%matplotlib inline\nimport torch\nimport local\n",
    "model = torch.nn.Linear(local.WIDTH, 512)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n!nvidia-smi",
    "for step in range(60):\n    loss = model(torch.randn(256, 512)).sum()\n"
    "    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()\n",
)


def open_notebook(client: Client, path: Path, cells: Sequence[str], first: int = 0) -> list[str]:
    """The URIs of its cells, numbered from ``first`` as VS Code does."""
    uris = [f"vscode-notebook-cell:{path}#W{first + n}sZmlsZQ%3D%3D" for n in range(len(cells))]
    client.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": path.as_uri(),
                "notebookType": "jupyter-notebook",
                "version": 1,
                "cells": [{"kind": 2, "document": uri} for uri in uris],
            },
            "cellTextDocuments": [
                {"uri": uri, "languageId": "python", "version": 1, "text": text}
                for uri, text in zip(uris, cells, strict=True)
            ],
        },
    )
    return uris


def heat(client: Client, uri: str) -> dict[int, float]:
    answer = client.request("warpline/heat", {"uri": uri})
    return {} if answer is None else {line["line"]: line["share"] for line in answer["lines"]}


def lenses(client: Client, uri: str) -> list[str]:
    found = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return [lens["command"]["title"] for lens in found]


def change(client: Client, path: Path, cells: dict[str, Any]) -> None:
    notebook = {"uri": path.as_uri(), "version": 2}
    client.notify("notebookDocument/didChange", {"notebookDocument": notebook, "change": {"cells": cells}})


def test_a_notebook_is_profiled_and_shown_on_its_cells(
    tmp_path: Path, connect: Callable[..., Client]
) -> None:
    (tmp_path / "work").mkdir()
    notebook = tmp_path / "work" / "train.ipynb"
    notebook.write_text("{}")
    (tmp_path / "work" / "local.py").write_text("WIDTH = 512\n")
    client = connect(tmp_path)
    assert client.server["capabilities"]["notebookDocumentSync"]
    cells = open_notebook(client, notebook, CELLS)
    assert lenses(client, cells[0]) == ["Profile this notebook"] and lenses(client, cells[2]) == []
    assert heat(client, cells[2]) == {}

    made = client.request("warpline/profile", {"uri": cells[2], "python": sys.executable, "steps": 2})
    assert Path(made["run"]).parent == tmp_path / ".warpline/runs"
    (said,) = [m["message"] for m in client.messages("window/showMessage") if "magics" in m["message"]]
    assert "Cell 1:1, Cell 2:3" in said
    assert "vscode-notebook-cell:" in made["best"]["uri"] and made["best"]["name"].startswith("Cell ")

    hot = heat(client, cells[2])
    assert {1, 2, 3} <= set(hot) <= {0, 1, 2, 3, 4} and sum(hot.values()) > 0.5
    whole = {"textDocument": {"uri": cells[2]}, "range": span((0, 0), (5, 0))}
    hinted = {hint["position"]["line"] for hint in client.request("textDocument/inlayHint", whole)}
    assert hinted and hinted <= set(hot)
    at = {
        "textDocument": {"uri": cells[2]},
        "position": {"line": max(hot, key=hot.__getitem__), "character": 6},
    }
    assert " ms" in client.request("textDocument/hover", at)["contents"]["value"]
    assert any("a step" in title for title in lenses(client, cells[2]))
    files = {line["uri"] for line in client.request("warpline/overview", {})["lines"]}
    assert cells[2] in files

    # A line more at the top of the cell, and a cell more above it.
    edit = {"range": span((0, 0), (0, 0)), "text": "# the loop\n"}
    document = {"uri": cells[2], "version": 2}
    change(client, notebook, {"textContent": [{"document": document, "changes": [edit]}]})
    assert set(heat(client, cells[2])) == {line + 1 for line in hot}
    new = {"uri": f"vscode-notebook-cell:{notebook}#W9", "languageId": "python", "version": 1, "text": "1"}
    array = {"start": 0, "deleteCount": 0, "cells": [{"kind": 2, "document": new["uri"]}]}
    change(client, notebook, {"structure": {"array": array, "didOpen": [new]}})
    assert lenses(client, new["uri"]) == ["Profile this notebook"]

    # Closed and opened again its cells have other URIs: they are known by their text.
    closed = [{"uri": uri} for uri in (*cells, new["uri"])]
    params = {"notebookDocument": {"uri": notebook.as_uri()}, "cellTextDocuments": closed}
    client.notify("notebookDocument/didClose", params)
    again = open_notebook(client, notebook, ("print(1)", *CELLS), first=20)
    assert client.until(lambda: heat(client, again[3])) == hot


def test_a_cell_that_cannot_be_a_script_is_named(tmp_path: Path, connect: Callable[..., Client]) -> None:
    notebook = tmp_path / "train.ipynb"
    client = connect(tmp_path)
    cells = open_notebook(client, notebook, ("import torch\n", "files = !ls\n"))
    with pytest.raises(Error, match=r"train\.ipynb: Cell 2:1 uses the result of a magic"):
        client.request("warpline/profile", {"uri": cells[0]})


def test_runs_of_a_notebook_are_told_by_cells_while_it_is_open(
    tmp_path: Path, connect: Callable[..., Client]
) -> None:
    """The editor cannot go to a cell of a notebook that is not open."""
    notebook, script = tmp_path / "train.ipynb", tmp_path / ".warpline" / "notebooks" / "train.ipynb.py"
    cells = ("import torch", "x = 1  # 4 ms\ny = 2  # 8 ms")
    text = export(str(notebook), cells).text
    script.parent.mkdir(parents=True)
    script.write_text(text)
    earlier = write_run(tmp_path, {script: text}, name="1", scale=3.0)
    run = write_run(tmp_path, {script: text}, name="2")
    client = connect(tmp_path)

    def hottest() -> str:
        found = client.request("warpline/overview", {})
        return found["lines"][0]["uri"] if found else ""

    (_, second) = open_notebook(client, notebook, cells)
    assert client.until(lambda: hottest() == second)
    assert client.request("warpline/overview", {})["again"] == notebook.as_uri()
    compared = client.request("warpline/compare", {"uri": second, "run": str(earlier)})
    rows = [(row["uri"], row["line"], row["beforeMs"], row["afterMs"]) for row in compared["lines"]]
    assert rows == [(second, 1, 24.0, 8.0), (second, 0, 12.0, 4.0)]
    # Its page names the script's lines.
    line = text.split("\n").index("y = 2  # 8 ms") + 1
    asked = {"run": str(run), "file": str(script), "line": line}
    assert client.request("warpline/place", asked) == {"uri": second, "line": 1}

    params = {
        "notebookDocument": {"uri": notebook.as_uri()},
        "cellTextDocuments": [{"uri": second}],
    }
    client.notify("notebookDocument/didClose", params)
    assert hottest() == script.as_uri()


FIXABLE = ("%matplotlib inline\nimport torch", "x = 1  # 4 ms\ny = 2  # 8 ms")


def fixable(tmp_path: Path, *changes: tuple[str, str, str]) -> tuple[Path, Path]:
    """A notebook and the script of its run, with a finding at ``y`` whose fix makes these ``changes``:
    ``(line, what is replaced on it, by what)``; with "" the line after it is put in."""
    notebook, script = tmp_path / "train.ipynb", tmp_path / ".warpline" / "notebooks" / "train.ipynb.py"
    text = export(str(notebook), FIXABLE).text
    lines = text.split("\n")
    script.parent.mkdir(parents=True)
    script.write_text(text)
    edits = []
    for line, old, new in changes:
        at = lines.index(line) + 1
        start = (at, line.index(old)) if old else (at + 1, 0)
        edits.append(Edit(str(script), start, (start[0], start[1] + len(old)), new))
    at = lines.index("y = 2  # 8 ms") + 1
    fix = Fix("Make it faster", "unsafe", tuple(edits))
    write_run(tmp_path, {script: text}, findings=[finding(script, at, fixes=(fix,))])
    return notebook, script


def fixed(client: Client, uri: str, text: str, line: int) -> str | None:
    """The cell with the fix of the finding on its ``line``; None where none can be made."""
    action = next(one for one in client.actions(uri, line) if one["title"].startswith("Make it faster"))
    answer = client.request("codeAction/resolve", action)
    if answer.get("edit") is None:
        return None
    (change,) = answer["edit"]["documentChanges"]
    assert change["textDocument"]["uri"] == uri
    return apply(text, change["edits"])


def test_a_fix_is_put_into_the_cell(tmp_path: Path, connect: Callable[..., Client]) -> None:
    notebook, _ = fixable(tmp_path, ("x = 1  # 4 ms", "1", "10"), ("y = 2  # 8 ms", "", "z = 3\n"))
    client = connect(tmp_path)
    first, second = open_notebook(client, notebook, FIXABLE)
    client.until(lambda: client.diagnostics(second))
    whole = "x = 10  # 4 ms\ny = 2  # 8 ms\nz = 3"
    assert fixed(client, second, FIXABLE[1], 1) == whole

    # Where lines were added above, in this cell and in the one before, the fix goes along.
    for uri in (first, second):
        edit = {"range": span((0, 0), (0, 0)), "text": "# more\n"}
        document = {"uri": uri, "version": 2}
        change(client, notebook, {"textContent": [{"document": document, "changes": [edit]}]})
    assert fixed(client, second, f"# more\n{FIXABLE[1]}", 2) == f"# more\n{whole}"


def test_a_fix_that_no_cell_can_take_says_what_to_do(tmp_path: Path, connect: Callable[..., Client]) -> None:
    notebook, _ = fixable(tmp_path, ("pass  # %matplotlib inline", "pass", "import math"))
    client = connect(tmp_path)
    (_, second) = open_notebook(client, notebook, FIXABLE)
    client.until(lambda: client.diagnostics(second))
    assert fixed(client, second, FIXABLE[1], 1) is None
    (said,) = client.messages("window/showMessage")
    assert "changes a magic or reaches over" in said["message"]
    with pytest.raises(Error, match="measure a notebook's fixes one by one"):
        client.request("warpline/tune", {"uri": second})
    named = client.actions(second, 1)[0]["data"]["finding"]
    edit = {"range": span((0, 0), (0, 0)), "text": "def\n"}  # no Python: nothing is measured
    document = {"uri": second, "version": 2}
    change(client, notebook, {"textContent": [{"document": document, "changes": [edit]}]})
    with pytest.raises(Error, match="Cell 2:1 is not plain Python"):
        client.request("warpline/measure", {"uri": second, "findingId": named})


def test_a_library_s_line_names_the_cell_that_calls_it(
    tmp_path: Path, connect: Callable[..., Client]
) -> None:
    library = tmp_path / "venv" / "library.py"
    library.parent.mkdir()
    library.write_text("def work():\n    return 1\n")
    notebook, script = fixable(tmp_path)
    at = script.read_text().split("\n").index("y = 2  # 8 ms") + 1
    own = Inside(None, str(script), at, "<module>", 1.0, 0.0, 0.0)
    part = (Inside(None, str(library), 2, "work", 7.0, 0.0, 8.0, text="return 1"), own)
    (run,) = (tmp_path / ".warpline" / "runs").iterdir()
    write_report(run, script, (replace(cost(script, at, "<module>", 8.0), inside=part),), (), 12.0)
    client = connect(tmp_path)
    (_, second) = open_notebook(client, notebook, FIXABLE)
    client.until(lambda: heat(client, second))
    shown = client.at("textDocument/hover", client.open(library), 1)["contents"]["value"]
    assert "| 7.00 ms | `-` | Cell 2:2 |" in shown
    line = client.request("warpline/overview", {"uri": second})["lines"][0]
    assert [(each["name"], each["place"], each["uri"], each["line"]) for each in line["inside"]] == [
        ("work", "library.py:2", library.as_uri(), 1),
        ("the line itself", "Cell 2:2", second, 1),
    ]


def test_comments_that_ignore_go_into_the_cell(tmp_path: Path, connect: Callable[..., Client]) -> None:
    notebook, _ = fixable(tmp_path, ("x = 1  # 4 ms", "1", "10"))
    client = connect(tmp_path)
    (_, second) = open_notebook(client, notebook, FIXABLE)
    client.until(lambda: client.diagnostics(second))
    action = next(one for one in client.actions(second, 1) if "on this line" in one["title"])
    (made,) = client.request("codeAction/resolve", action)["edit"]["documentChanges"]
    assert apply(FIXABLE[1], made["edits"]).endswith("# warpline: ignore[fp32-matmul]")
    action = next(one for one in client.actions(second, 1) if "in this project" in one["title"])
    created, _ = client.request("codeAction/resolve", action)["edit"]["documentChanges"]
    assert created["uri"] == (tmp_path / "pyproject.toml").as_uri()


def opened(path: Path, *cells: str) -> types.DidOpenNotebookDocumentParams:
    items = [
        types.TextDocumentItem(f"vscode-notebook-cell:{path}#W{n}", "python", 1, text)
        for n, text in enumerate(cells)
    ]
    kind = types.NotebookCellKind.Code
    return types.DidOpenNotebookDocumentParams(
        types.NotebookDocument(
            path.as_uri(), "jupyter-notebook", 1, [types.NotebookCell(kind, item.uri) for item in items]
        ),
        items,
    )


def test_a_change_that_comes_right_behind_finds_the_cells(tmp_path: Path) -> None:
    """``did_open`` is a coroutine: over TCP the next message is handled before it begins."""
    server, path = build(), tmp_path / "a.ipynb"
    next(server.protocol.lsp_notebook_document__did_open(opened(path, "import torch")))
    cells = server.documents.cells(str(path))
    assert cells is not None
    assert [cell.text for cell in cells] == ["import torch"]


def test_each_notebook_has_a_script_of_its_own(tmp_path: Path) -> None:
    """Also where two have one name; what a link in its place leads to is not touched."""
    server: Any = SimpleNamespace(documents=Documents(), show=lambda *_: None)
    outside = tmp_path / "outside.py"
    outside.write_text("keep")
    project = tmp_path / "project"
    scripts = []
    for name in ("a", "b"):
        path = project / name / "train.ipynb"
        kept = project / ".warpline" / "notebooks" / name
        kept.mkdir(parents=True)
        (kept / "train.ipynb.py").symlink_to(outside)
        server.documents.open_notebook(opened(path, f"print('{name}')"))
        scripts.append(Path(written(server, str(path), project)))
    assert ["print('a')" in script.read_text() for script in scripts] == [True, False]
    assert outside.read_text() == "keep"
    assert all(script.is_relative_to(project / ".warpline") for script in scripts)
