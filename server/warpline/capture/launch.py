"""Run the target in its interpreter and bring home a run folder."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from warpline.capture.control import Purpose, write_control
from warpline.capture.process import Target
from warpline.capture.progress import Progress
from warpline.model.problem import Problem
from warpline.model.run import Request

__all__ = ["Progress", "capture"]


def capture(
    request: Request,
    destination: Path,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: threading.Event | None = None,
    *,
    on_ready: Callable[[Path], None] | None = None,
    stdin: int | None = None,
    output: int = 2,
) -> Path:
    """Run the script, measure a window of its steps, leave the complete run folder ``destination``.

    ``on_ready`` is called with it as soon as it is complete, while the script is still ending.
    ``stdin`` (a file descriptor; None is an empty input) and ``output`` (for the script's standard
    output and error) are handed to the target. Raises Problem: status 1 when the script ended
    before it could be measured, 2 for wrong input, 130 when ``cancelled`` was set. Then nothing is
    left of the folder or of the processes. A KeyboardInterrupt passes through, after the same.
    """
    check(request)
    partial = destination.with_name(f".{destination.name}.partial")
    try:
        partial.mkdir(parents=True)
    except OSError as error:
        raise Problem(
            f"cannot write to {destination.parent}: {(error.strerror or str(error)).lower()}"
        ) from None
    try:
        control = write_control(request, partial, Purpose.PROFILE)
        with Target(request, control, stdin=stdin, output=output) as target:

            def ready() -> None:
                partial.rename(destination)
                if on_ready is not None:
                    on_ready(destination)

            target.follow(on_progress or (lambda progress: None), cancelled or threading.Event(), ready)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return destination


def check(request: Request) -> None:
    """Raise Problem (status 2) for a request that cannot be run."""
    if not request.module:
        script = Path(request.target)
        if not script.exists():
            raise Problem(f"no such file: {request.target}")
        if not os.access(script, os.R_OK):
            raise Problem(f"cannot read {request.target}")
    if shutil.which(request.python) is None:
        raise Problem(f"no such interpreter: {request.python}")
    if request.cwd and not Path(request.cwd).is_dir():
        raise Problem(f"no such folder: {request.cwd}")
