"""Run the script under Nsight Compute (``ncu``) and bring home its report of one kernel launch.

The options are those that work on an H200 (Nsight Compute 2025.3): some 40 passes, seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from warpline.capture import interpreter
from warpline.model.problem import Problem
from warpline.model.run import Request

#: Launches let pass before the one that is looked at: compilation and autotuning come first.
_SKIP = 5


def collect(request: Request, kernel: str, destination: Path, ncu: Path, skip: int = _SKIP) -> Path:
    """Profile one launch of ``kernel`` into ``destination`` (``….ncu-rep``); the script is then ended.

    ``kernel`` is the function's name as the device knows it. Raises Problem when counters are not
    permitted, or no such launch came.
    """
    command = [
        *(str(ncu), "--target-processes", "all", "--kill", "yes", "--clock-control", "none"),
        *("--set", "full", "--import-source", "yes", "--force-overwrite", "--export", str(destination)),
        *("--kernel-name-base", "function", "--kernel-name", f"regex:^{re.escape(kernel)}$"),
        *("--launch-skip", str(skip), "--launch-count", "1"),
        # A launcher starts the script with the interpreter that it belongs to, as the capture does it.
        *(request.launcher or (interpreter.find(request),)),
        *(("-m", request.target) if request.module else (request.target,)),
        *request.argv,
    ]
    try:
        done = subprocess.run(
            command,
            cwd=request.cwd or None,
            env={**os.environ, **request.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None,
            timeout=request.timeout_s,
            check=False,
        )
    except OSError as error:
        raise Problem(f"{ncu} cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise Problem(f"no launch of {kernel} within {request.timeout_s:g} s", 1) from None
    said = done.stdout.decode(errors="replace")
    if "ERR_NVGPUCTRPERM" in said:
        raise Problem("hardware counters are not permitted here (ERR_NVGPUCTRPERM); see 'warpline doctor'")
    if not destination.is_file():
        complaints = [line for line in said.splitlines() if line.startswith("==ERROR==")]
        why = complaints[-1].removeprefix("==ERROR==").strip() if complaints else f"{kernel} was not launched"
        raise Problem(f"Nsight Compute saw nothing: {why}", 1)
    return destination
