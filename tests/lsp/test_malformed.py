"""Whatever a client sends, the server answers it or leaves it, and goes on."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lsp.client import SERVER, Client, Error, capabilities, span
from tests.lsp.conftest import VSCODE


def test_malformed_messages(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    for body in (
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"12",
        b"\xff\xfe",
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "1.0", "id": 1, "method": "shutdown"}',
        b'{"jsonrpc": "2.0", "method": 7}',
        b'{"jsonrpc": "2.0", "id": 99999, "result": {}}',
        b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {}}',
        b'{"jsonrpc": "2.0", "method": "no/such"}',
        b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "none"}}',
    ):
        client.send_bytes(body)
    client.process.stdin.write(b"Nonsense: yes\r\n\r\nContent-Length: x\r\n\r\n")
    assert len(client.hints(uri)) == 4
    assert client.messages("window/showMessage") == []


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("textDocument/hover", {"textDocument": 5}, -32602),
        ("textDocument/inlayHint", {"textDocument": {"uri": "file:///a.py"}}, -32602),
        ("textDocument/codeAction", None, -32602),
        ("workspace/executeCommand", {"command": "warpline.none"}, -32602),
        ("workspace/executeCommand", {"command": "warpline.explain", "arguments": []}, -32602),
        ("warpline/heat", {}, -32602),
        ("warpline/heat", [], -32602),
        ("warpline/heat", {"uri": 5}, -32602),
        ("warpline/profile", {"uri": 5}, -32602),
        ("warpline/profile", {"args": "--epochs 2"}, -32602),
        ("warpline/profile", {}, -32803),
        ("warpline/measure", {}, -32602),
        ("warpline/none", {}, -32601),
    ],
)
def test_wrong_requests_are_answered_with_an_error(
    shared: Client, method: str, params: object, code: int
) -> None:
    with pytest.raises(Error) as error:
        shared.request(method, params)
    assert error.value.code == code


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    with Client(tmp_path_factory.mktemp("shared"), capabilities=capabilities(VSCODE)) as client:
        yield client


def test_places_that_are_not_there(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    for line, character in ((2**31 - 1, 0), (0, 2**31 - 1), (4, 2**31 - 1)):
        client.at("textDocument/hover", uri, line, character)
        assert isinstance(client.actions(uri, line), list)
    client.edit(uri, (900, 5), (10_000, 0), "# at the end\n")
    client.edit(uri, (5, 0), (4, 0), "")  # end before start
    assert client.hint_lines(uri)
    assert (
        client.request(
            "textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": span((9, 0), (2, 0))}
        )
        == []
    )
    gone = {"title": "x", "data": {"path": str(client.folders[0] / "train.py"), "what": "fix", "run": "?"}}
    assert "edit" not in client.request("codeAction/resolve", gone)
    hint = {"position": {"line": 1, "character": 1}, "label": "x", "data": {"path": 5, "line": "a"}}
    assert "tooltip" not in client.request("inlayHint/resolve", hint)


def test_requests_before_initialize_are_refused() -> None:
    client = Client()
    try:
        with pytest.raises(Error) as error:
            client.request("textDocument/hover", {"textDocument": {"uri": "file:///a"}, "position": {}})
        assert error.value.code in (-32002, -32602)
        client.initialize()
        assert client.server["serverInfo"]["name"] == "warpline"
    finally:
        client.close()


def test_a_client_that_says_nothing_of_itself(tmp_path: Path, connect: Callable[..., Client]) -> None:
    script = tmp_path / "a.py"
    script.write_text("x = 1\n")
    client = connect(capabilities={})  # no folders, no capabilities
    uri = client.open(script)
    assert client.hints(uri) == []
    client.wait(lambda: client.messages("textDocument/publishDiagnostics"))
    sent = {message["method"] for message in client.seen}
    assert sent <= {"textDocument/publishDiagnostics", "warpline/results"}


def test_nothing_heavy_is_loaded_at_the_start() -> None:
    """Start-up is imports; and the server's own process is never to hold torch."""
    heavy = ["torch", "pandas", "numpy", "libcst", "rich", "warpline.pipeline"]
    code = (
        "import sys; from warpline.lsp import serve; from warpline.lsp.methods import registry; "
        "serve.build(); registry.load();"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SERVER)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"


def test_one_client_over_tcp() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "warpline", "server", "--tcp", str(port)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SERVER)})
    pause = threading.Event()
    for _ in range(600):
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except OSError:
            pause.wait(0.1)
    params = {"processId": None, "rootUri": None, "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
    connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert connection.recv(16).startswith(b"Content-Length")
    connection.close()  # in the middle of the answer
    assert process.wait(90) == 0


def test_standard_output_is_the_channel_and_nothing_else(profiled: tuple[Client, str]) -> None:
    """All that came so far was framed JSON, or the client would have lost its place."""
    client, uri = profiled
    assert json.dumps(client.hints(uri))
    assert client.process.poll() is None
