"""Buttons for a failure: the line where it happened, the command it names, the log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from warpline.lsp import convert

_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)')
#: A command that a message says to run.
_COMMAND = re.compile(r"`((?:warpline|pip|python3?|uv|conda) [^`]+)`")
#: Lines of output that are looked through for a traceback, from the end.
_TAIL = 200

Remedy = dict[str, Any]


def of_failure(message: str, output: Iterable[str], folder: Path) -> list[Remedy]:
    """The remedies for what ``message`` says and the script's last ``output`` shows."""
    found = [run_in_terminal(command) for command in _COMMAND.findall(message)]
    place = user_frame(list(output)[-_TAIL:], folder)
    if place is not None:
        path, line = place
        found.append(go_to(path, line - 1))
    return [*found, SHOW_LOG]


def user_frame(output: list[str], folder: Path) -> tuple[str, int] | None:
    """``(path, line)`` of the deepest frame in the project's files of the last traceback in ``output``."""
    for line in reversed(output):
        match = _FRAME.match(line)
        if match and Path(match[1]).is_relative_to(folder) and "site-packages" not in match[1]:
            return match[1], int(match[2])
    return None


def go_to(path: str, line: int) -> Remedy:
    """``line`` is 0-based."""
    place = {"uri": convert.uri(path), "line": line}
    return {"title": f"Go to {Path(path).name}:{line + 1}", "command": "warpline.goTo", "arguments": [place]}


def run_in_terminal(command: str, said: str = "") -> Remedy:
    """Typed into a terminal and not run: the user presses Enter. ``said``: the button's name for it."""
    title = f"Type `{said or command}`"
    return {"title": title, "command": "warpline.typeInTerminal", "arguments": [command]}


SHOW_LOG: Remedy = {"title": "Show Log", "command": "warpline.showLog", "arguments": []}
CHOOSE_INTERPRETER: Remedy = {
    "title": "Choose Interpreter",
    "command": "warpline.chooseInterpreter",
    "arguments": [],
}
