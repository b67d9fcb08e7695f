"""Settings: the editor's over the project's over ours; changed while the server runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.lsp.client import Client
from tests.lsp.conftest import TRAIN
from tests.lsp.folder import finding, write_run


def changed(client: Client, settings: dict) -> None:
    client.settings = settings
    client.notify("workspace/didChangeConfiguration", {"settings": {"warpline": settings}})


def test_settings_of_the_editor_over_those_of_the_project(
    script: Path, connect: Callable[..., Client]
) -> None:
    (script.parent / "pyproject.toml").write_text("[tool.warpline]\nhints = 20.0\n")
    write_run(script.parent, {script: TRAIN}, findings=[finding(script, 5)])
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hint_lines(uri) == {4: "20.0 ms · 50 %", 9: "10.0 ms · 25 %"})

    changed(client, {"hints": {"threshold": 40, "wording": "{ms} in {function}, {calls} calls"}})
    client.until(lambda: client.hint_lines(uri) == {4: "20.0 ms in attend, 2 calls"})
    # Null, empty and of a wrong type mean "not set".
    changed(client, {"hints": {"threshold": None, "wording": ""}, "steps": "many", "python": None})
    client.until(lambda: client.hint_lines(uri) == {4: "20.0 ms · 50 %", 9: "10.0 ms · 25 %"})
    changed(client, {"hints.enabled": False, "lenses": {"enabled": False}, "diagnostics": {"enabled": False}})
    client.until(lambda: client.hints(uri) == [])
    assert client.request("textDocument/codeLens", {"textDocument": {"uri": uri}}) == []
    assert client.diagnostics(uri) == []
    changed(client, {"ignore": ["fp32-matmul"]})
    client.until(lambda: client.hints(uri))
    assert client.diagnostics(uri) == []


def test_the_project_file_is_watched(script: Path, connect: Callable[..., Client]) -> None:
    write_run(script.parent, {script: TRAIN})
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: len(client.hints(uri)) == 4)
    (script.parent / "pyproject.toml").write_text("[tool.warpline]\nhints = 20.0\n")
    client.until(lambda: len(client.hints(uri)) == 2)


def test_a_project_file_that_cannot_be_read_is_told_once(
    script: Path, connect: Callable[..., Client]
) -> None:
    (script.parent / "pyproject.toml").write_text("[tool.warpline]\nnonsense = 1\n")
    write_run(script.parent, {script: TRAIN})
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    changed(client, {"hints": {"threshold": 40}})
    client.until(lambda: len(client.hints(uri)) == 1)
    (told,) = client.messages("window/showMessage")
    assert "unknown setting tool.warpline.nonsense" in told["message"]


def test_a_client_that_never_answers_holds_nothing_up(script: Path, connect: Callable[..., Client]) -> None:
    write_run(script.parent, {script: TRAIN})
    client = Client(script.parent, capabilities={"workspace": {"configuration": True}})
    client.answers["workspace/configuration"] = lambda params: None
    try:
        client.initialize()
        uri = client.open(script)
        client.until(lambda: client.hints(uri))
    finally:
        client.close()
