"""Eleven real clients' capabilities, recorded: each gets what it asked for, and nothing that it did not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lsp.client import CLIENTS, Client, apply, capabilities, span
from tests.lsp.conftest import TRAIN
from tests.lsp.folder import finding, write_run
from warpline.model.report import Edit, Fix

#: Two of its letters are longer in UTF-16 and UTF-8 than in code points; it is line 4 of the text.
WIDE = TRAIN.replace("    scores = q @ k  # 20 ms", "    scores = q @ k; t = '😀é'  # 20 ms")
LINE = WIDE.split("\n")[4]


def offered(client: Client) -> dict:
    return client.server["capabilities"]


@pytest.fixture(params=CLIENTS)
def wide(request: pytest.FixtureRequest, script: Path, connect: Callable[..., Client]) -> tuple[Client, str]:
    script.write_text(WIDE, encoding="utf-8")
    start = LINE.index("q @ k")
    fix = Fix("Use scaled products", "safe", (Edit(str(script), (5, start), (5, start + 5), "(q @ k)"),))
    other = finding(script, 10, rule="launch-bound", cause=(script, 5))
    write_run(script.parent, {script: WIDE}, findings=[finding(script, 5, fixes=(fix,)), other])
    client = connect(script.parent, name=request.param)
    client.name = request.param
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    return client, uri


def test_all_recorded_clients_are_here() -> None:
    assert len(CLIENTS) == 11


def test_a_client_gets_what_it_can_show(wide: tuple[Client, str], script: Path) -> None:  # noqa: PLR0915
    client, uri = wide
    asked = capabilities(client.name)
    documents = asked["textDocument"]
    encoding = asked.get("general", {}).get("positionEncodings", ["utf-16"])[0]
    assert offered(client)["positionEncoding"] == encoding

    # Hints of a range that does not begin at 0, at the end of the text and before no line end.
    hints = client.hints(uri, 4, 5)
    units = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding]
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    assert [hint["position"] for hint in hints] == [
        {"line": 4, "character": len(LINE.encode(units)) // width},
        {"line": 5, "character": len("    return scores.softmax(-1)  # 4 ms")},
    ]
    assert [hint["label"] for hint in hints] == ["20.0 ms · 50 %", "4.00 ms · 10 %"]
    lazy = "tooltip" in documents.get("inlayHint", {}).get("resolveSupport", {}).get("properties", [])
    assert ("tooltip" in hints[0]) != lazy
    if lazy:
        resolved = client.request("inlayHint/resolve", hints[0])
        assert "20.0 ms" in resolved["tooltip"]["value"]
        assert resolved["position"] == hints[0]["position"]

    # Hover in the first format that the client names.
    hover = client.at("textDocument/hover", uri, 4)["contents"]
    assert hover["kind"] == documents["hover"]["contentFormat"][0]
    assert ("**" in hover["value"]) == (hover["kind"] == "markdown")

    # Diagnostics one way only.
    if "diagnostic" in documents:
        assert "diagnosticProvider" in offered(client)
        diagnostics = client.diagnostics(uri)
        assert client.messages("textDocument/publishDiagnostics") == []
    else:
        assert "diagnosticProvider" not in offered(client)
        pushed = "textDocument/publishDiagnostics"
        client.wait(lambda: any(m["diagnostics"] for m in client.messages(pushed)))
        diagnostics = client.messages(pushed)[-1]["diagnostics"]
    assert [d["range"]["start"] for d in diagnostics] == [
        {"line": 4, "character": 4},
        {"line": 9, "character": 4},
    ]
    assert diagnostics[0]["range"]["end"] == hints[0]["position"]
    assert diagnostics[0]["code"] == "fp32-matmul" and diagnostics[0]["severity"] == 2
    how = documents["diagnostic" if "diagnostic" in documents else "publishDiagnostics"]
    if how.get("relatedInformation") is False:
        assert "relatedInformation" not in diagnostics[1]
    else:
        related = diagnostics[1]["relatedInformation"][0]["location"]
        assert (related["uri"], related["range"]["start"]["line"]) == (uri, 4)

    # The edit when it is asked for, or at once where the client cannot ask.
    action = next(a for a in client.actions(uri, 4) if a["title"].startswith("Use scaled products"))
    later = "edit" in documents["codeAction"].get("resolveSupport", {}).get("properties", [])
    assert ("edit" in action) != later
    edit = (client.request("codeAction/resolve", action) if later else action)["edit"]
    if asked["workspace"].get("workspaceEdit", {}).get("documentChanges"):
        (change,) = edit["documentChanges"]
        assert change["textDocument"] == {"uri": uri, "version": 1}
        edits = change["edits"]
    else:
        ((where, edits),) = edit["changes"].items()
        assert where == uri
    assert apply(WIDE, edits, encoding) == WIDE.replace("q @ k;", "(q @ k);")

    # Lenses: over the file and over both functions.
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert [(lens["range"]["start"]["line"], lens["command"]["title"]) for lens in lenses] == [
        (0, "Profile this file"),
        (0, "40.0 ms a step"),
        (3, "self 24.0 ms · 60 %"),
        (8, "self 16.0 ms · 40 %"),
    ]

    # Edits come in the client's own units.
    column = len(LINE.split(";")[0])
    client.edit(uri, (4, 0), (4, column + 1), "    scores = q.matmul(k);")
    assert client.hints(uri, 4, 4)[0]["label"] == "was 20.0 ms · 50 %"
    client.edit(uri, (4, 0), (4, len("    scores = q.matmul(k);")), LINE[: column + 1])
    assert client.hints(uri, 4, 4) == hints[:1]

    # Refresh requests where they are supported.
    write_run(script.parent, {script: WIDE.replace("# 20 ms", "# 60 ms")})
    client.until(lambda: client.hints(uri, 4, 4)[0]["label"] == "60.0 ms · 75 %")
    workspace = asked["workspace"]
    for kind, method in [("inlayHint", "inlayHint"), ("codeLens", "codeLens"), ("diagnostics", "diagnostic")]:
        if not workspace.get(kind, {}).get("refreshSupport"):
            assert client.messages(f"workspace/{method}/refresh") == []
        elif kind != "diagnostics" or "diagnostic" in documents:
            client.wait(lambda name=method: client.messages(f"workspace/{name}/refresh"))
    if not workspace.get("didChangeConfiguration", {}).get("dynamicRegistration"):
        assert client.messages("client/registerCapability") == []


@pytest.mark.parametrize("wide", ["nvim-0.12.4"], indirect=True)
def test_a_position_inside_a_letter_or_past_the_end_is_taken_for_the_nearest(
    wide: tuple[Client, str],
) -> None:
    client, uri = wide
    assert client.at("textDocument/hover", uri, 4, 10_000) is not None
    assert client.at("textDocument/hover", uri, 10_000) is None
    assert client.request(
        "textDocument/inlayHint",
        {"textDocument": {"uri": uri}, "range": span((4, 0), (10_000, 10_000))},
    )
