"""What is asked first, and never again by some clients, waits for the results; and results computed once
are those of the text as it is, whatever happened to it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import SILENCE, Client, span
from tests.lsp.conftest import TRAIN
from tests.lsp.folder import finding, write_run

#: The real server, but it waits as long as a slow machine may need.
PATIENT = (
    "from warpline.lsp.state import loading; loading.LIMIT_S = 60; "
    "from warpline.lsp.serve import serve; serve()"
)


@pytest.mark.parametrize("inside", [True, False], ids=["in the workspace", "outside"])
def test_the_first_answers_have_the_results(
    script: Path, tmp_path: Path, connect: Callable[..., Client], inside: bool
) -> None:
    write_run(script.parent, {script: TRAIN}, findings=[finding(script, 5)])
    other = tmp_path / "workspace"
    other.mkdir()
    client = connect(script.parent if inside else other, command=[sys.executable, "-c", PATIENT])
    uri = client.open(script)
    document = {"textDocument": {"uri": uri}}
    asked = [
        client.begin("textDocument/inlayHint", {**document, "range": span((0, 0), (20, 0))}),
        client.begin("textDocument/codeLens", document),
        client.begin("textDocument/diagnostic", document),
    ]
    hints, lenses, diagnostics = map(client.answer, asked)
    assert len(hints) == 4
    assert [lens["range"]["start"]["line"] for lens in lenses] == [0, 0, 3, 8]
    assert len(diagnostics["items"]) == 1


def test_a_first_answer_is_not_held_back_for_ever(script: Path, connect: Callable[..., Client]) -> None:
    """Nor by a client that never says what its settings are."""
    write_run(script.parent, {script: TRAIN})
    start = "from warpline.lsp.methods import configuration; configuration._PATIENCE_S = 10**6; "
    start += "from warpline.lsp.state import loading; from warpline.lsp.serve import serve; "
    command = [sys.executable, "-c", start + "loading.LIMIT_S = 0.2; serve()"]
    answers = {"workspace/configuration": lambda params: SILENCE}
    client = connect(script.parent, command=command, answers=answers)
    uri = client.open(script)
    client.until(lambda: len(client.hints(uri)) == 4)


def test_what_was_found_once_follows_the_text(script: Path, connect: Callable[..., Client]) -> None:
    other = script.with_name("model.py")
    other.write_text("y = x * 2  # 40 ms\n")
    findings = [finding(script, 5), finding(script, 10, cause=(other, 1))]
    write_run(script.parent, {script: TRAIN, other: other.read_text()}, findings=findings)
    client = connect(script.parent)
    uri = client.open(script)

    def pulled(previous: str | None = None) -> dict[str, Any]:
        params = {"textDocument": {"uri": uri}, "previousResultId": previous}
        return client.request("textDocument/diagnostic", params)

    def places() -> list[tuple[int, int | None]]:
        return [
            (item["range"]["start"]["line"], related[0]["location"]["range"]["start"]["line"])
            if (related := item.get("relatedInformation"))
            else (item["range"]["start"]["line"], None)
            for item in pulled()["items"]
        ]

    client.until(lambda: places() == [(4, None), (9, 0)])
    # The link to the rule's page comes a moment later, and makes them others.
    first = client.until(
        lambda: (found := pulled()) and all("codeDescription" in item for item in found["items"]) and found
    )
    assert pulled(first["resultId"]) == {"kind": "unchanged", "resultId": first["resultId"]}
    assert pulled("of another server")["items"] == first["items"]

    client.edit(uri, (0, 0), (0, 0), "\n")
    assert pulled(first["resultId"])["kind"] == "full"
    assert places() == [(5, None), (10, 0)]
    assert client.actions(uri, 4) == []
    assert client.actions(uri, 5)[0]["diagnostics"][0]["range"]["start"]["line"] == 5
    # In the file where the time is seen, which is not the one that is asked about.
    second = client.open(other)
    client.edit(second, (0, 0), (0, 0), "\n\n")
    assert places() == [(5, None), (10, 2)]
    # A comment changes nothing but what is ignored.
    client.edit(uri, (5, len("    scores = q @ k")), (5, len("    scores = q @ k")), "  # warpline: ignore")
    assert places() == [(10, 2)]
    assert client.actions(uri, 5) == []
    every = {"textDocument": {"uri": uri}, "range": span((0, 0), (10_000, 0)), "context": {"diagnostics": []}}
    assert {
        action["diagnostics"][0]["range"]["start"]["line"]
        for action in client.request("textDocument/codeAction", every)
    } == {10}
    write_run(script.parent, {script: TRAIN}, findings=[finding(script, 11)])
    client.until(lambda: places() == [(11, None)])
    assert client.actions(uri, 10) == [] and client.actions(uri, 11)
