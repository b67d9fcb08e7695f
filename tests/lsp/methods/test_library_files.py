"""A library's file in the editor: what its lines take of the user's, and nothing to change there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lsp.client import Client, uri
from tests.lsp.folder import finding, lines, write_report, write_run
from warpline.model.report import Inside

LIBRARY = """\
class Trainer:
    def train(self):
        for batch in self.batches:
            self.model(batch)
            self.check()

    def check(self):
        assert self.loss.isfinite()
"""
SCRIPT = "from trainer import Trainer\n\nTrainer().train()  # 40 ms\nTrainer().check()  # 10 ms\n"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "venv" / "site-packages" / "trainer" / "trainer.py"
    path.parent.mkdir(parents=True)
    path.write_text(LIBRARY)
    return path


def profiled(project: Path, library: Path) -> Path:
    """A run of a script whose time is in the library."""

    def inside(line: int, ms: float, module: str | None = None, part: str = "") -> Inside:
        text = LIBRARY.splitlines()[line - 1].strip()
        function = "Trainer.check" if line > 6 else "Trainer.train"
        return Inside(
            module, str(library), line, function, ms, ms / 2, 1.0, 0.0, text, ms / 4, ms / 4, ms / 2, part
        )

    project.mkdir()
    script = project / "train.py"
    script.write_text(SCRIPT)
    own = Inside(None, str(script), 3, "<module>", 1.0, 0.0, 0.0)
    run = write_run(project, {script: SCRIPT})
    train, check = lines(script, SCRIPT)
    made = (
        replace(train, inside=(inside(4, 30.0, "net.*"), inside(8, 9.0), own)),
        replace(check, inside=(inside(8, 9.8, part="copy/to the host"), inside(7, 0.2))),
    )
    found = finding(script, 3, "fp32-matmul")
    write_report(run, script, made, (found,), 50.0)
    return script


def words(client: Client, name: str, line: int) -> str:
    found = client.at("textDocument/hover", name, line)
    return str(found["contents"]["value"]) if found else ""


def test_a_library_s_lines_have_hints_heat_and_a_card(
    tmp_path: Path, library: Path, connect: Callable[..., Client]
) -> None:
    script = profiled(tmp_path / "project", library)
    client = connect(script.parent)
    client.open(script)
    client.until(lambda: client.hints(uri(script)))
    at = client.open(library)
    hints = client.until(lambda: client.hints(at))
    assert [(hint["position"]["line"], hint["label"]) for hint in hints] == [
        (3, "30.0 ms · 60 %"),
        (7, "18.8 ms · 38 %"),
    ]
    heat = client.request("warpline/heat", {"uri": at})
    assert {line["line"]: round(line["stepMs"], 3) for line in heat["lines"]} == {3: 30.0, 6: 0.2, 7: 18.8}
    card = words(client, at, 7)
    assert "18.8 ms" in card and "`Trainer.check`" in card
    assert card.index("| 9.80 ms | `copy/to the host` | train.py:4 |") < card.index(
        "| 9.00 ms | `-` | train.py:3 |"
    )
    assert "| 30.0 ms | `net.*` | train.py:3 |" in words(client, at, 3)
    assert words(client, at, 0) == ""
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": at}})
    titles = [one["command"]["title"] for one in lenses]
    assert not any(title.startswith("Profile") for title in titles)
    assert any("49.0 ms" in title for title in titles)


def test_nothing_is_to_be_changed_in_a_library_s_file(
    tmp_path: Path, library: Path, connect: Callable[..., Client]
) -> None:
    script = profiled(tmp_path / "project", library)
    client = connect(script.parent)
    client.open(script)
    client.until(lambda: client.hints(uri(script)))
    at = client.open(library)
    client.until(lambda: client.hints(at))
    assert client.actions(at, 3) == [] == client.actions(at, 7)
    assert client.diagnostics(at) == []
    overview = client.request("warpline/overview", {"uri": uri(script)})
    assert all("site-packages" not in line["uri"] for line in overview["lines"])
    line = overview["lines"][0]
    part = line["inside"][0]
    assert (part["name"], part["place"], part["uri"], part["line"]) == (
        "net.*", "trainer.py:4", uri(library), 3,
    )  # fmt: skip
    (below,) = part["inside"]
    assert (below["name"], below["about"]) == ("trainer.py:4", "self.model(batch)")
    assert [one["name"] for one in line["inside"]] == ["net.*", "Trainer.check", "the line itself"]
    assert sum(one["stepMs"] for one in line["inside"]) == line["stepMs"]
    assert (line["inside"][2]["uri"], line["inside"][2]["line"]) == (uri(script), 2)


def test_a_file_with_results_of_its_own_is_no_library_s(
    tmp_path: Path, library: Path, connect: Callable[..., Client]
) -> None:
    own = LIBRARY.replace("self.check()", "self.check()  # 7 ms")
    write_run(library.parent, {library: own}, findings=[finding(library, 5)])
    script = profiled(tmp_path / "project", library)  # newer, and it calls the file
    library.write_text(own)
    client = connect(script.parent)
    client.open(script)
    client.until(lambda: client.hints(uri(script)))
    at = client.open(library)
    hints = client.until(lambda: [hint for hint in client.hints(at) if hint["position"]["line"] == 4])
    assert [(hint["position"]["line"], hint["label"]) for hint in hints] == [(4, "7.00 ms · 100 %")]
    assert client.until(lambda: client.diagnostics(at))


def test_lines_that_say_something_else_by_now_show_nothing(
    tmp_path: Path, library: Path, connect: Callable[..., Client]
) -> None:
    script = profiled(tmp_path / "project", library)
    library.write_text(
        LIBRARY.replace("self.model(batch)", "self.run(batch)")
    )  # another version is installed
    client = connect(script.parent)
    client.open(script)
    client.until(lambda: client.hints(uri(script)))
    at = client.open(library)
    hints = client.until(lambda: client.hints(at))
    assert [hint["position"]["line"] for hint in hints] == [7]


def test_an_editor_may_follow_the_links_that_lead_to_a_library(
    tmp_path: Path, library: Path, connect: Callable[..., Client]
) -> None:
    link = tmp_path / "linked"
    link.symlink_to(tmp_path / "venv")
    script = profiled(tmp_path / "project", link / library.relative_to(tmp_path / "venv"))
    client = connect(script.parent)
    client.open(script)
    client.until(lambda: client.hints(uri(script)))
    at = client.open(library)
    assert [hint["position"]["line"] for hint in client.until(lambda: client.hints(at))] == [3, 7]
    assert "| 30.0 ms | `net.*` | train.py:3 |" in words(client, at, 3)
