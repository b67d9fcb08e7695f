"""Code actions on a real profile: the edit is made on the text as it is when it is chosen."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ExampleRun
from tests.lsp.client import Client, apply
from tests.lsp.conftest import TRAIN
from tests.lsp.folder import finding, write_run


@pytest.fixture
def example(
    example_run: ExampleRun, tmp_path: Path, connect: Callable[..., Client]
) -> tuple[Client, str, str]:
    """The example and its run, moved into a folder of their own as one would move a project."""
    script = tmp_path / "slow.py"
    script.write_bytes(example_run.script.read_bytes())
    place = tmp_path / ".warpline" / "runs" / example_run.run.name
    shutil.copytree(example_run.run, place)
    old, new = str(example_run.folder).encode(), str(tmp_path).encode()
    for name in ("manifest.json", "sources.json", "report.json", "profile.json", "facts.json"):
        (place / name).write_bytes((place / name).read_bytes().replace(old, new))
    client = connect(tmp_path)
    uri = client.open(script)
    client.until(lambda: client.diagnostics(uri))
    return client, uri, script.read_text()


def edits(action: dict) -> list[dict]:
    return [edit for change in action["edit"]["documentChanges"] for edit in change.get("edits", ())]


def test_every_finding_is_at_its_edit_site_and_its_fix_applies(example: tuple[Client, str, str]) -> None:
    client, uri, text = example
    notices = client.diagnostics(uri)
    lines = text.split("\n")
    (loader,) = [notice for notice in notices if notice["code"] == "loader-without-workers"]
    assert "DataLoader(" in lines[loader["range"]["start"]["line"]]
    assert (
        lines[loader["relatedInformation"][0]["location"]["range"]["start"]["line"]]
        .strip()
        .startswith("for ")
    )
    for notice in notices:
        for action in client.actions(uri, notice["range"]["start"]["line"]):
            if action.get("data", {}).get("what") == "fix":
                fixed = apply(text, edits(client.request("codeAction/resolve", action)))
                assert fixed != text
                ast.parse(fixed)

    # After edits the fix is made anew: where the line is now, and with what it says now.
    client.edit(uri, (0, 0), (0, 0), "# one\n# two\n")
    at = loader["range"]["start"]["line"] + 2
    changed = lines[at - 2].replace("shuffle=True", "shuffle=False, drop_last=True")
    action = next(a for a in client.actions(uri, at) if a.get("data", {}).get("what") == "fix")
    client.edit(uri, (at, 0), (at, len(lines[at - 2])), changed)
    now = "# one\n# two\n" + text.replace(lines[at - 2], changed)
    fixed = apply(now, edits(client.request("codeAction/resolve", action)))
    assert "drop_last=True, num_workers=" in fixed
    ast.parse(fixed)

    # Once it is made, the finding is gone, and its other lines still have theirs.
    client.change(uri, {"text": fixed})
    assert "loader-without-workers" not in {notice["code"] for notice in client.diagnostics(uri)}


def test_a_rules_page_is_a_local_file(example: tuple[Client, str, str]) -> None:
    client, uri, _ = example
    notices = client.until(lambda: [n for n in client.diagnostics(uri) if "codeDescription" in n])
    page = Path(notices[0]["codeDescription"]["href"].removeprefix("file://"))
    assert page.read_text().startswith(f"# {notices[0]['code']}")
    action = next(
        a for a in client.actions(uri, notices[0]["range"]["start"]["line"]) if "Explain" in a["title"]
    )
    command = action["command"]
    answer = client.command(command["command"], *command["arguments"])
    assert client.messages("window/showDocument")[0]["uri"] == answer["uri"]
    assert client.command("warpline.explain", "../../etc/passwd") is None


def test_fix_all(example: tuple[Client, str, str]) -> None:
    client, uri, text = example
    assert client.actions(uri, 0, only=["refactor"]) == []
    for action in client.actions(uri, 0, only=["source.fixAll"]):
        assert action["kind"] == "source.fixAll.warpline"
        ast.parse(apply(text, edits(client.request("codeAction/resolve", action))))


@pytest.fixture
def found(script: Path, connect: Callable[..., Client]) -> tuple[Client, str]:
    write_run(script.parent, {script: TRAIN}, findings=[finding(script, 5), finding(script, 10)])
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: len(client.diagnostics(uri)) == 2)
    return client, uri


def chosen(client: Client, uri: str, line: int, title: str) -> dict:
    action = next(action for action in client.actions(uri, line) if title in action["title"])
    return client.request("codeAction/resolve", action)


def test_ignored_here(found: tuple[Client, str]) -> None:
    client, uri = found
    fixed = apply(TRAIN, edits(chosen(client, uri, 4, "on this line")))
    assert fixed.split("\n")[4] == "    scores = q @ k  # 20 ms  # warpline: ignore[fp32-matmul]"
    client.change(uri, {"text": fixed})
    assert [notice["range"]["start"]["line"] for notice in client.diagnostics(uri)] == [9]
    assert client.hint_lines(uri)[4] == "20.0 ms · 50 %"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '[tool.warpline]\nignore = ["fp32-matmul"]\n'),
        ("[project]\nname = 'a'", "[project]\nname = 'a'\n\n[tool.warpline]\nignore = [\"fp32-matmul\"]\n"),
        ("[tool.warpline]\nsteps = 3\n", '[tool.warpline]\nignore = ["fp32-matmul"]\nsteps = 3\n'),
        (
            '[tool.warpline]\nignore = [\n  "small-batch",\n]\n[tool.b]\n',
            '[tool.warpline]\nignore = ["fp32-matmul", \n  "small-batch",\n]\n[tool.b]\n',
        ),
    ],
)
def test_ignored_in_the_project(found: tuple[Client, str], before: str | None, after: str) -> None:
    client, uri = found
    project = client.folders[0] / "pyproject.toml"
    if before is not None:
        project.write_text(before)
    action = chosen(client, uri, 4, "in this project")
    changes = action["edit"].get("documentChanges")
    assert (changes[0].get("kind") == "create") == (before is None)
    project.write_text(apply(before or "", edits(action)))
    assert project.read_text() == after
    client.notify("textDocument/didSave", {"textDocument": {"uri": project.as_uri()}})
    client.until(lambda: client.diagnostics(uri) == [])
