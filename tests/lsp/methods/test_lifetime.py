"""From the first header to ``exit``, as the specification has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lsp.client import Client, Error
from tests.lsp.conftest import TRAIN
from tests.lsp.folder import write_run


@pytest.mark.parametrize(("first", "status"), [(True, 0), (False, 1)], ids=["shutdown", "no shutdown"])
def test_exit_says_whether_shutdown_came_first(tmp_path: Path, first: bool, status: int) -> None:
    client = Client(tmp_path)
    client.initialize()
    if first:
        client.request("shutdown", None)
    client.notify("exit", None)
    assert client.process.wait(60) == status
    client.close()


def test_a_request_after_shutdown_is_answered_with_an_error(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    client.request("shutdown", None)
    for method, params in (("warpline/heat", {"uri": uri}), ("shutdown", None)):
        with pytest.raises(Error) as error:
            client.request(method, params, limit=20)
        assert error.value.code == -32600
    client.notify("exit", None)
    assert client.process.wait(60) == 0


@pytest.mark.parametrize("header", ["content-length: %d\r\n\r\n", "CONTENT-LENGTH:%d \r\n\r\n"])
def test_header_names_in_any_case(tmp_path: Path, header: str) -> None:
    client = Client(tmp_path)
    params = {"processId": None, "rootUri": None, "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    client.process.stdin.write((header % len(body) + body).encode())
    client.process.stdin.flush()
    assert client.answer(1, limit=30)["serverInfo"]["name"] == "warpline"
    client._count = 1
    client.close()


def test_undoing_a_change_of_the_whole_file_loses_no_hint(
    script: Path, connect: Callable[..., Client]
) -> None:
    text = TRAIN + "\n".join("step(1, 2)  # 1 ms" for _ in range(6)) + "\n"
    script.write_text(text)
    write_run(script.parent, {script: text})
    client = connect(script.parent)
    uri = client.open(script)
    before = client.until(lambda: client.hint_lines(uri))
    others = [
        "",
        text.upper(),
        "\n".join(reversed(text.split("\n"))),
        "\n".join(sorted(text.split("\n"))),
        text.replace("step(1, 2)", "step(2, 1)"),
        "import os\n" * 40,
    ]
    for other in others:
        client.change(uri, {"text": other})
        client.hints(uri)
        client.change(uri, {"text": text})
        assert client.hint_lines(uri) == before, other
