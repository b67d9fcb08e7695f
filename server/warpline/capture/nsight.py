"""Runs the script under Nsight Compute (``ncu``); returns the report of one kernel launch.

The options were tested on an H200 (Nsight Compute 2025.3): about 40 passes over the kernel, some seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
import uuid
from pathlib import Path

from warpline.capture import interpreter, tree
from warpline.model.problem import Problem
from warpline.wire.run import Request

#: Launches to skip before the profiled one: compilation and autotuning come first.
MOST_SKIPPED = 5
_POLL_S = 0.2


def collect(
    request: Request,
    kernel: str,
    destination: Path,
    ncu: Path,
    skip: int = MOST_SKIPPED,
    cancelled: threading.Event | None = None,
) -> Path:
    """Profile one launch of ``kernel`` into ``destination`` (``….ncu-rep``), then end the script.

    ``kernel`` is the function's name on the device. Raises Problem if counters are not permitted, the kernel
    was not launched, or ``cancelled`` was set. No process of the script is left running.
    """
    command = [
        *(str(ncu), "--target-processes", "all", "--kill", "yes", "--clock-control", "none"),
        *("--set", "full", "--import-source", "yes", "--force-overwrite", "--export", str(destination)),
        *("--kernel-name-base", "function", "--kernel-name", f"regex:^{re.escape(kernel)}$"),
        *("--launch-skip", str(skip), "--launch-count", "1"),
        *interpreter.started_by(request),
        *(("-m", request.target) if request.module else (request.target,)),
        *request.argv,
    ]
    mark = uuid.uuid4().hex
    environment = {**os.environ, **request.environment, tree.MARK: mark}
    try:
        process = subprocess.Popen(
            command,
            cwd=request.cwd or None,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Problem(f"{ncu} cannot be started: {error.strerror}") from None
    try:
        said = _output(process, mark, kernel, request.timeout_s, cancelled)
    finally:
        tree.kill(process, mark)
    if "ERR_NVGPUCTRPERM" in said:
        raise Problem("hardware counters are not permitted here (ERR_NVGPUCTRPERM); see 'warpline doctor'")
    if not destination.is_file():
        complaints = [line for line in said.splitlines() if line.startswith("==ERROR==")]
        why = complaints[-1].removeprefix("==ERROR==").strip() if complaints else f"{kernel} was not launched"
        raise Problem(f"Nsight Compute recorded nothing: {why}", 1)
    return destination


def _output(
    process: subprocess.Popen[bytes],
    mark: str,
    kernel: str,
    limit_s: float | None,
    cancelled: threading.Event | None,
) -> str:
    """The output of ``ncu`` and the script, once both have ended. Raises Problem after ``limit_s``."""
    until = time.monotonic() + limit_s if limit_s is not None else None
    while True:
        try:
            return process.communicate(timeout=_POLL_S)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            if process.poll() is not None:  # a child of the script is still alive and holds the pipe
                tree.kill(process, mark)
            if cancelled is not None and cancelled.is_set():
                raise Problem("cancelled", 130) from None
            if until is not None and time.monotonic() > until:
                raise Problem(f"{kernel} was not launched within {limit_s:g} s", 1) from None
