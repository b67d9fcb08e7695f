"""Results move with their text, whoever moves it; a changed line's are called stale."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lsp.client import Client, capabilities
from tests.lsp.conftest import TRAIN, VSCODE
from tests.lsp.folder import write_run


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Client(tmp_path_factory.mktemp("workspace"), capabilities=capabilities(VSCODE)) as client:
        yield client


@pytest.fixture
def profiled(shared: Client, script: Path) -> Iterator[tuple[Client, str]]:
    """The script, in a folder of its own outside of the workspace, on a server that all tests here share."""
    write_run(script.parent, {script: TRAIN})
    uri = shared.open(script)
    shared.until(lambda: shared.hints(uri))
    yield shared, uri
    shared.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


HINTS = {4: "20.0 ms · 50 %", 5: "4.00 ms · 10 %", 9: "10.0 ms · 25 %", 10: "5.80 ms · 14 %"}


def test_hints_below_the_threshold_are_not_shown(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    assert client.hint_lines(uri) == HINTS
    assert 11 in {line["line"] for line in client.request("warpline/heat", {"uri": uri})["lines"]}


def test_lines_inserted_above_and_undone(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    client.edit(uri, (0, 0), (0, 0), '"""Trains."""\n\n')
    assert client.hint_lines(uri) == {line + 2: label for line, label in HINTS.items()}
    client.edit(uri, (0, 0), (2, 0), "")
    assert client.hint_lines(uri) == HINTS


def test_cut_here_and_pasted_there(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    client.edit(uri, (3, 0), (6, 0), "")
    assert client.hint_lines(uri) == {6: "10.0 ms · 25 %", 7: "5.80 ms · 14 %"}
    client.edit(
        uri, (10, 0), (10, 0), "def attend(q, k):\n    scores = q @ k\n    return scores.softmax(-1)\n"
    )
    moved = {11: "20.0 ms · 50 %", 12: "4.00 ms · 10 %"}
    assert client.hint_lines(uri) == {6: "10.0 ms · 25 %", 7: "5.80 ms · 14 %", **moved}


def test_a_changed_line_is_stale_until_it_is_changed_back(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    client.edit(uri, (4, 13), (4, 14), "queries")
    assert client.hint_lines(uri) == {**HINTS, 4: "was 20.0 ms · 50 %"}
    assert "has changed" in client.at("textDocument/hover", uri, 4)["contents"]["value"]
    heat = {line["line"]: line["stale"] for line in client.request("warpline/heat", {"uri": uri})["lines"]}
    assert heat == {4: True, 5: False, 9: False, 10: False, 11: False}
    client.edit(uri, (4, 13), (4, 20), "q")
    assert client.hint_lines(uri) == HINTS


def test_white_space_and_comments_change_no_cost(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    client.edit(uri, (4, 0), (4, 0), "    ")
    client.edit(uri, (5, 29), (5, 29), "  # why")
    assert client.hint_lines(uri) == HINTS


def test_a_formatter_that_sends_the_whole_text(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    formatted = TRAIN.replace("\n\n\n", "\n\n").replace("q @ k", "q  @  k").replace("sum()", "sum( )")
    client.change(uri, {"text": "# formatted\n" + formatted})
    assert client.hint_lines(uri) == {
        4: "20.0 ms · 50 %",
        5: "4.00 ms · 10 %",
        8: "was 10.0 ms · 25 %",
        9: "5.80 ms · 14 %",
    }


def test_another_branch_and_back(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    other = TRAIN.replace("    scores = q @ k  # 20 ms\n", "").replace("x).sum()", "x).mean()")
    client.change(uri, {"text": other})
    assert client.hint_lines(uri) == {4: "4.00 ms · 10 %", 8: "was 10.0 ms · 25 %", 9: "5.80 ms · 14 %"}
    client.change(uri, {"text": TRAIN})
    assert client.hint_lines(uri) == HINTS


def test_line_ends_that_only_python_knows(script: Path, connect: Callable[..., Client]) -> None:
    text = "a = '\u2028'\n\x0cb = 1  # 5 ms\nc = '\x85\x1c\x1d\x1e\x0b\u2029'\nd = 2  # 7 ms\n"
    script.write_text(text, encoding="utf-8", newline="")
    write_run(script.parent, {script: text})
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    assert list(client.hint_lines(uri)) == [1, 3]
    client.edit(uri, (2, 0), (2, 0), "# one more\n")
    assert list(client.hint_lines(uri)) == [1, 4]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_line_ends(script: Path, connect: Callable[..., Client], end: str) -> None:
    text = TRAIN.replace("\n", end)
    script.write_bytes(text.encode())
    write_run(script.parent, {script: TRAIN})  # the runner may have read it with line ends translated
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    assert client.hint_lines(uri) == HINTS
    column = len("    scores = q @ k  # 20 ms")
    assert client.hints(uri)[0]["position"] == {"line": 4, "character": column}
    client.edit(uri, (4, column), (4, column), f"{end}    pass")
    assert list(client.hint_lines(uri)) == [4, 6, 10, 11]


def test_a_file_written_outside_the_editor(script: Path, connect: Callable[..., Client]) -> None:
    """Not open in the editor: its lines in the tree follow the file on disk, which the client is told of."""
    write_run(script.parent, {script: TRAIN})
    client = connect(script.parent)
    overview = client.until(lambda: client.request("warpline/overview", {}))
    assert [line["line"] for line in overview["lines"]] == [4, 9, 10, 5, 11]
    refreshed = len(client.messages("workspace/diagnostic/refresh"))

    def write() -> bool:
        # Until it is watched a change is seen when it is asked about, and told of to nobody.
        scratch = script.with_suffix(".new")
        scratch.write_text("# new\n" + script.read_text())
        scratch.replace(script)
        lines = client.request("warpline/overview", {})["lines"]
        count = script.read_text().count("# new\n")
        assert [line["line"] for line in lines] == [n + count for n in (4, 9, 10, 5, 11)]
        return len(client.messages("workspace/diagnostic/refresh")) > refreshed

    client.until(write)


def test_a_checkout_moves_hints_in_an_open_file(script: Path, connect: Callable[..., Client]) -> None:
    folder = script.parent

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)

    git("init", "-q")
    git("add", "train.py")
    git("commit", "-qm", "one")
    write_run(folder, {script: TRAIN})
    git("checkout", "-qb", "other")
    script.write_text("# other\n" + TRAIN)
    git("commit", "-qam", "two")
    client = connect(folder)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    assert list(client.hint_lines(uri)) == [5, 6, 10, 11]
    git("checkout", "-q", "-")
    client.change(uri, {"text": script.read_text()})  # what an editor does when the file changed
    assert client.hint_lines(uri) == HINTS


def test_a_renamed_file_keeps_its_results(profiled: tuple[Client, str], script: Path) -> None:
    client, uri = profiled
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    new = script.with_name("run.py")
    script.rename(new)
    renamed = client.open(new)
    assert client.until(lambda: client.hint_lines(renamed)) == HINTS
