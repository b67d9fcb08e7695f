"""Follows a script that replaces itself by ``os.exec…``.

Some scripts start themselves again, to set an environment variable that is read early or to change their
arguments. If the new program is a script run by Python, that is measured instead. If it is anything else, the
server is told.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .patches import Patches

#: Options of the interpreter with a separate value.
WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")


def watch(control_path: str, replaced: Callable[[str], None]) -> None:
    """``replaced(program)`` is called before this process becomes a program that cannot be watched."""
    patches = Patches()

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def exec_(path: Any, arguments: Sequence[Any], *environment: Any) -> Any:
            words = followed(control_path, path, arguments)
            if words is None:
                replaced(os.path.basename(os.fsdecode(path)))
            return original(path, arguments if words is None else words, *environment)

        return exec_

    for name in ("execv", "execve"):  # the others call these
        patches.replace(os, name, make)


def followed(control_path: str, path: Any, arguments: Sequence[Any]) -> list[str] | None:
    """The arguments that run the same command under the runner; None if it is not a script run by Python."""
    try:
        words = [os.fsdecode(word) for word in arguments]
        program = os.fsdecode(path)
    except TypeError:  # a file descriptor
        return None
    if not os.path.basename(os.path.realpath(program)).startswith("python"):
        return None
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-c", "-m", "-"):
        at += 2 if words[at] in WITH_VALUE else 1
    module = at < len(words) and words[at] == "-m"
    at += module
    if at >= len(words) or words[at] in ("-c", "-"):
        return None
    target, argv = words[at], words[at + 1 :]
    if not module and os.path.abspath(target) == BOOT:  # as sys.orig_argv had it
        return None
    try:
        return [*words[: at - module], BOOT, _control_for(control_path, target, argv, module)]
    except OSError:
        return None


def _control_for(control_path: str, target: str, argv: list[str], module: bool) -> str:
    """A control file beside ours that names another script; returns its path."""
    with open(control_path, encoding="utf-8") as file:
        fields = json.load(file)
    request = fields["request"]
    request["target"] = target if module else os.path.abspath(target)
    request["typed"] = "" if module else target
    request["argv"], request["module"] = argv, module
    request["python"] = sys.executable
    path = os.path.join(os.path.dirname(control_path), "control-again.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(fields, file)
    return path
