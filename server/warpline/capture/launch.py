"""Runs the target in its interpreter; returns a run folder or a timing."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from warpline.capture import probe
from warpline.capture.control import write_control
from warpline.capture.outcome import Outcome
from warpline.capture.process import INTERRUPTED_S, Target
from warpline.capture.replayed import Input
from warpline.capture.requests import check
from warpline.capture.rescue import rescue
from warpline.capture.tries import Tries
from warpline.model.problem import Problem
from warpline.wire import stages
from warpline.wire.messages import Progress
from warpline.wire.run import MANIFEST, Request


def capture(
    request: Request,
    destination: Path,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: threading.Event | None = None,
    *,
    on_ready: Callable[[Path], None] | None = None,
    on_pause: Callable[[Path, int], None] | None = None,
    stdin: int | None = None,
    output: int = 2,
    interrupted_s: float | None = None,
) -> Path:
    """Run the script, measure a window of its steps, leave the complete run folder ``destination``.

    ``on_ready`` is called with the folder as soon as the run is complete. The script may still be ending
    then (with ``whole_run`` it has ended). If the script fails after that, the manifest gets a note. If a
    rank dies, the run has what the other ranks wrote.
    ``on_pause`` is called when a long capture pauses, with the trace and how many bytes of it stay as they
    are.
    ``stdin`` (a file descriptor; None is an empty input) and ``output`` (a file descriptor for the script's
    standard output and error) are passed to the target. ``interrupted_s``: seconds that it may take to end
    when it is cancelled (None: ``INTERRUPTED_S``).

    Raises Problem: status 1 if the script ended before it could be measured, 2 for wrong input, 130 if
    ``cancelled`` was set. On an error or a KeyboardInterrupt, the folder and all processes are removed first.

    A script that ends before the windows are complete runs again, with windows that fit the steps it made.
    If it made fewer than three and ended without an error, another run looks for a loop with iterations that
    can be steps (``capture/looking.py``); if there is none, the script is measured as a whole. Each run reads
    the same standard input (``capture/replayed.py``), unless that is a terminal.
    """
    request = check(request)
    partial = destination.with_name(f".{destination.name}.{os.getpid()}.partial")
    remove_abandoned(destination.parent)
    try:
        partial.mkdir(parents=True)
    except OSError as error:
        raise Problem(f"cannot write to {destination.parent}: {reason(error)}") from None

    say = on_progress or (lambda progress: None)

    def ready() -> None:
        partial.rename(destination)
        say(Progress(stages.ENDING, 0, None, "the script is ending"))
        if on_ready is not None and not request.whole_run:
            on_ready(destination)

    cancel = cancelled or threading.Event()
    patience_s = INTERRUPTED_S if interrupted_s is None else interrupted_s
    tries = Tries(request, probe.sampler())
    given = Input(stdin, None if request.module else Path(request.target).parent)
    try:
        while not tries.over:
            control = write_control(
                tries.request, partial, tries.purpose, windows=tries.windows, notes=tries.told
            )
            with (
                given.run() as read,
                Target(request, control, stdin=read, output=output, interrupted_s=patience_s) as target,
            ):
                try:
                    outcome = target.follow(say, cancel, ready, on_pause)
                except Problem as why:
                    if not tries.forgives(why):
                        raise
                    outcome = Outcome()
            if not outcome.ready and request.launcher and rescue(partial, outcome):
                outcome.ready = True
                ready()
            if outcome.ready:
                outcome.amend(destination / MANIFEST, target.name)
                if on_ready is not None and request.whole_run:
                    on_ready(destination)
                return destination
            before = tries.count
            if tries.failed(outcome):
                problem = target.failure(outcome)
                again = "; it was run a second time, but the first run had already read its standard input"
                remedy = again if before and not given.again and outcome.hungry else outcome.remedy(request)
                raise Problem(f"{problem}{remedy}", problem.status)
            if note := tries.go_on(outcome):
                say(Progress(stages.STARTING, 0, None, note))
        raise Problem(
            f"{request.target} made a different number of steps in each run: nothing could be measured", 1
        )
    finally:
        given.close()
        shutil.rmtree(partial, ignore_errors=True)


def remove_abandoned(folder: Path) -> None:
    """Remove unfinished runs (``.NAME.PID.partial``) of processes that no longer exist."""
    for partial in folder.glob(".*.partial"):
        pid = partial.name.split(".")[-2]
        if not pid.isdigit():
            continue
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(partial, ignore_errors=True)
        except PermissionError:
            continue  # the process is alive and belongs to another user


def reason(error: OSError) -> str:
    """The system's message for an error, in lower case."""
    return (error.strerror or str(error)).lower()
