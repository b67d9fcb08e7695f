"""The worker's part of ``warpline/tune``: ``warpline tune`` in a process of its own, followed and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpline.lsp.worker.start import START
from warpline.model.problem import Problem
from warpline.text import patch

OnProgress = Callable[[str, int, "int | None", str], None]
#: How often it is looked whether the job was cancelled, in seconds.
_LOOK_S = 0.2
#: How long the search gets to end the script it runs.
_GRACE_S = 8.0


def tune(job: dict[str, Any], progress: OnProgress, cancelled: threading.Event, _: dict[str, Any]) -> Any:
    """``{"runs": folder of runs, "cwd", "target": [script, arguments…], "budget": seconds}`` -> what
    ``warpline tune --json`` prints, with the patch as ``{"edits": [Edit…]}``. Raises Problem."""
    with tempfile.TemporaryDirectory(prefix="warpline-tune-") as scratch:
        found = Path(scratch) / "tune.json"
        reader, writer = os.pipe()
        command = [sys.executable, "-c", START, "tune", "--json", str(found), "--run-dir", job["runs"]]
        command += ["--budget", str(job["budget"]), "--progress-fd", str(writer), *job["target"]]
        process = subprocess.Popen(
            command,
            cwd=job["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=subprocess.PIPE,
            pass_fds=[writer],
            text=True,
            errors="replace",
        )
        os.close(writer)
        last: list[str] = []
        threads = [
            threading.Thread(target=_follow, args=(reader, progress), daemon=True),
            threading.Thread(target=_echo, args=(process, last), daemon=True),
        ]
        for thread in threads:
            thread.start()
        while process.poll() is None:
            if cancelled.wait(_LOOK_S):
                _end(process)
                raise Problem("cancelled", 130)
        for thread in threads:
            thread.join(_GRACE_S)
        if process.returncode != 0 or not found.is_file():
            raise Problem(last[-1] if last else "tune failed", process.returncode or 1)
        answer: dict[str, Any] = json.loads(found.read_text())
    answer["edits"] = edits(answer["best"]["patch"], Path(job["cwd"]))
    return answer


def edits(diff: str, folder: Path) -> list[dict[str, Any]]:
    """The hunks of a unified diff, each as an Edit (lines from 1, columns 0)."""
    return [
        {"file": file, "start": (first, 0), "end": (end, 0), "text": text}
        for file, first, end, text in patch.hunks(diff, folder)
    ]


def _follow(reader: int, progress: OnProgress) -> None:
    with os.fdopen(reader, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                at = json.loads(line)
                progress("measuring", int(at.get("done") or 0), at.get("total"), str(at.get("message") or ""))
            except (ValueError, AttributeError, TypeError):
                continue


def _echo(process: subprocess.Popen[str], last: list[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        print(line, end="", file=sys.stderr, flush=True)
        last[:] = [line.strip()] if line.strip() else last


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupt the process as Ctrl+C would. If it goes on, it is killed together with the worker's other
    processes."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
