"""Runs a Warpline command in its own process, because standard output belongs to the protocol and a cancelled
call must end everything that it started."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import anyio
from mcp.server.mcpserver.exceptions import ToolError

from warpline.model import units


class Failed(ToolError):
    """The command ended with an error. The agent sees the text: the command's one line."""


async def output(words: Sequence[str], timeout_s: float) -> str:
    """Standard output of ``warpline WORDS…``. Raises Failed; a cancelled call kills the process."""
    command = [sys.executable, "-m", "warpline", *words]
    try:
        with anyio.fail_after(timeout_s):
            done = await anyio.run_process(command, check=False, stdin=None, input=b"")
    except TimeoutError:
        raise Failed(f"warpline {words[0]} did not end within {units.ms(1000 * timeout_s)}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        ours = [line for line in said if line.startswith("warpline: ")]
        raise Failed((ours or said or [f"warpline {words[0]} ended with status {done.returncode}"])[-1])
    return done.stdout.decode(errors="replace")


async def answer(words: Sequence[str], timeout_s: float) -> Any:
    """The JSON that ``warpline WORDS… --json -`` prints (the option is among the words)."""
    return json.loads(await output(words, timeout_s))
