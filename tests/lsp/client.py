"""A client for tests: the real server over real stdio, with capabilities recorded from real editors."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SERVER = HERE.parents[1] / "server"
CLIENTS = sorted(path.stem for path in (HERE / "clients").glob("*.json"))
#: CI is slow and noisy: everything is waited for, nothing is slept for.
LIMIT = 90.0
#: As what an entry of ``Client.answers`` gives: the server waits in vain.
SILENCE = object()


class Error(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message"))
        self.code, self.data = error["code"], error.get("data")


def capabilities(name: str) -> dict[str, Any]:
    """What a real client said in its ``initialize``."""
    return json.loads((HERE / "clients" / f"{name}.json").read_text())


class Client:
    """Start with ``with Client(folder) as client``. Notifications and the server's requests are kept."""

    def __init__(
        self,
        *folders: Path,
        capabilities: dict[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        process_id: int | None = None,
        command: list[str] | None = None,
        answers: dict[str, Callable[[Any], Any]] | None = None,
    ) -> None:
        self.folders = folders
        self.capabilities = capabilities or {}
        self.settings = settings
        self.seen: list[dict[str, Any]] = []  # every message of the server that is no answer
        self.answers = answers or {}  # method -> what to answer the server
        self._answered: dict[int, dict[str, Any]] = {}
        self._news = threading.Condition()
        self._count = 0
        self._versions: dict[str, int] = {}
        self._ended = False
        self._process_id = process_id
        command = command or [sys.executable, "-m", "warpline", "server", "--stdio"]
        path = os.pathsep.join(filter(None, (str(SERVER), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": path, **(env or {})}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folders[0] if folders else None,
        )
        self.stderr: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._complaints, daemon=True).start()

    def __enter__(self) -> Client:
        self.initialize()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def initialize(self) -> dict[str, Any]:
        folders = [{"uri": uri(folder), "name": folder.name} for folder in self.folders]
        self.server = self.request(
            "initialize",
            {
                "processId": self._process_id,
                "rootUri": folders[0]["uri"] if folders else None,
                "workspaceFolders": folders or None,
                "capabilities": self.capabilities,
            },
        )
        self.notify("initialized", {})
        return self.server

    def close(self) -> None:
        if self.process.poll() is None:
            try:
                self.request("shutdown", None)
                self.notify("exit", None)
                self.process.wait(LIMIT)
            except (OSError, EOFError, Error):
                self.process.kill()
                self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()

    # -- asking ---------------------------------------------------------------------------------

    def begin(self, method: str, params: Any) -> int:
        """Send a request; its number, for ``answer`` or ``cancel``."""
        self._count += 1
        self.send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        return self._count

    def answer(self, number: int, limit: float = LIMIT) -> Any:
        """The result of a request. Raises Error; EOFError when the server is gone."""
        with self._news:
            self._news.wait_for(lambda: number in self._answered or self._ended, limit)
            if number not in self._answered:
                raise EOFError("the server is gone") if self._ended else TimeoutError(f"request {number}")
            message = self._answered.pop(number)
        if "error" in message:
            raise Error(message["error"])
        return message.get("result")

    def request(self, method: str, params: Any, limit: float = LIMIT) -> Any:
        return self.answer(self.begin(method, params), limit)

    def command(self, command: str, *arguments: Any) -> Any:
        return self.request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel(self, number: int) -> None:
        self.notify("$/cancelRequest", {"id": number})

    def send(self, message: dict[str, Any]) -> None:
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, body: bytes) -> None:
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    # -- waiting --------------------------------------------------------------------------------

    def wait(self, condition: Callable[[], Any], limit: float = LIMIT) -> Any:
        """Wait until ``condition()`` is true, looked at again whenever the server says something."""
        with self._news:
            found = self._news.wait_for(condition, limit)
        assert found, f"waited {limit} s for {condition}; seen: {[m['method'] for m in self.seen][-30:]}"
        return found

    def until(self, condition: Callable[[], Any], limit: float = LIMIT) -> Any:
        """Wait until ``condition()``, which asks the server itself, is true."""
        end = threading.Event()
        for _ in range(int(limit / 0.1)):
            if found := condition():
                return found
            end.wait(0.1)
        raise AssertionError(f"waited {limit} s for {condition}")

    def messages(self, method: str) -> list[Any]:
        """Parameters of all notifications and requests of the server by that name."""
        return [message.get("params") for message in tuple(self.seen) if message["method"] == method]

    # -- documents ------------------------------------------------------------------------------

    def open(self, path: Path | str, text: str | None = None) -> str:
        name = path if isinstance(path, str) else uri(path)
        if text is None:
            text = Path(path).read_bytes().decode()
        self._versions[name] = 1
        item = {"uri": name, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return name

    def change(self, name: str, *changes: dict[str, Any]) -> None:
        self._versions[name] += 1
        document = {"uri": name, "version": self._versions[name]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})

    def edit(self, name: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        self.change(name, {"range": span(start, end), "text": text})

    def hints(self, name: str, first: int = 0, last: int = 10_000) -> list[dict[str, Any]]:
        params = {"textDocument": {"uri": name}, "range": span((first, 0), (last, 0))}
        return self.request("textDocument/inlayHint", params)

    def hint_lines(self, name: str) -> dict[int, str]:
        return {hint["position"]["line"]: hint["label"] for hint in self.hints(name)}

    def at(self, method: str, name: str, line: int, character: int = 0) -> Any:
        place = {"textDocument": {"uri": name}, "position": {"line": line, "character": character}}
        return self.request(method, place)

    def diagnostics(self, name: str) -> list[dict[str, Any]]:
        return self.request("textDocument/diagnostic", {"textDocument": {"uri": name}})["items"]

    def actions(self, name: str, line: int, only: Iterable[str] | None = None) -> list[dict[str, Any]]:
        context: dict[str, Any] = {"diagnostics": []}
        if only is not None:
            context["only"] = list(only)
        params = {"textDocument": {"uri": name}, "range": span((line, 0), (line, 0)), "context": context}
        return self.request("textDocument/codeAction", params)

    # -- the other side -------------------------------------------------------------------------

    def _listen(self) -> None:
        stream = self.process.stdout
        try:
            while True:
                length = 0
                while (header := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = header.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                if not length:
                    break
                self._handle(json.loads(stream.read(length)))
        except (OSError, ValueError):
            pass
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _handle(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            result = self._serve(message["method"], message.get("params"))
            try:
                if result is not SILENCE:
                    self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            except (OSError, ValueError):
                return
        with self._news:
            if "method" in message:
                self.seen.append(message)
            else:
                self._answered[message["id"]] = message
            self._news.notify_all()

    def _serve(self, method: str, params: Any) -> Any:
        if method in self.answers:
            return self.answers[method](params)
        if method == "workspace/configuration":
            return [self.settings for _ in params["items"]]
        if method == "workspace/applyEdit":
            return {"applied": True}
        if method == "window/showDocument":
            return {"success": True}
        return None

    def _complaints(self) -> None:
        try:
            for line in self.process.stderr:
                self.stderr.put(line.decode(errors="replace"))
        except (OSError, ValueError):
            pass


def uri(path: Path) -> str:
    return path.as_uri()


def span(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def apply(text: str, edits: list[dict[str, Any]], encoding: str = "utf-16") -> str:
    """The text with TextEdits made as an editor makes them; overlapping ones are refused."""
    lines = [*text.splitlines(keepends=True), ""] if "\x0c" not in text else text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(place: dict[str, int]) -> int:
        if place["line"] >= len(lines):
            return len(text)
        line, units = lines[place["line"]], place["character"]
        width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
        codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding]
        return starts[place["line"]] + len(line.encode(codec)[: units * width].decode(codec))

    spans = sorted((offset(e["range"]["start"]), offset(e["range"]["end"]), e["newText"]) for e in edits)
    for one, other in itertools.pairwise(spans):
        assert one[1] <= other[0], "edits overlap"
    for start, end, new in reversed(spans):
        text = text[:start] + new + text[end:]
    return text
