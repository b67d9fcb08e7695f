"""Times the steps of a script, edited in memory or not, without the profiler."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from warpline.capture.control import write_control
from warpline.capture.process import INTERRUPTED_S, Target
from warpline.capture.requests import check
from warpline.capture.turn import ResumeFifo
from warpline.model.problem import Problem
from warpline.wire import timing
from warpline.wire.control import Purpose, Windows
from warpline.wire.messages import Progress
from warpline.wire.run import Request
from warpline.wire.timing import Timing


def time_steps(
    request: Request,
    overlay: Mapping[str, str] | None = None,
    *,
    steps: int | None = None,
    windows: Windows | None = None,
    on_again: Callable[[Windows], None] | None = None,
    seed: int | None = 0,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: threading.Event | None = None,
    turn: ResumeFifo | None = None,
    sliced: bool = False,
    interrupted_s: float = INTERRUPTED_S,
) -> Timing:
    """Run the script with ``overlay`` ({path: text}) laid over its sources, time a window of steps.

    A script that ends before its windows are through is run a second time, with windows that fit the steps
    it made: how many there are is not known before. ``on_again`` is told these windows then; given as
    ``windows`` (in place of the lengths below) the same script needs one run only.

    Nothing on disk is touched. ``request.warmup`` and ``steps`` are lengths of the windows (None:
    found by the runner), ``request.timeout_s`` limits all of it, ``seed`` is given to torch, random
    and numpy before the script's first line after their import (None: not touched). With ``turn``
    the script waits after its import of torch until that comes; ``timeout_s`` begins again then. With
    ``sliced`` it waits, standing still, before every ``steps`` steps as well, until the turn ends; it is
    not run a second time, and when it ends well or is cancelled, the slices so far are the answer, if there
    are any. A script that is run a second time does not wait again: it has its turn.
    ``interrupted_s`` is what it may take to end by itself when it is cancelled. The script's output is kept
    away. Raises Problem: status 1 with the reason when the script failed, hung, or made too few steps, 130
    when ``cancelled`` was set; the whole process tree
    is gone by then.
    """
    from warpline.capture.again import only_timed, second_try

    request = check(request)
    windows = windows or Windows(request.warmup, steps, sliced=sliced)
    say = on_progress or (lambda progress: None)

    with tempfile.TemporaryDirectory(prefix="warpline-timing-") as name:
        folder = Path(name)
        for _ in range(2):
            control = write_control(
                request,
                folder,
                Purpose.TIME,
                windows=windows,
                seed=seed,
                overlay=overlay,
                turn=turn.path if turn is not None else "",
                turn_s=turn.patience_s if turn is not None else 0.0,
            )
            with (
                (folder / "output").open("wb") as output,
                Target(
                    request,
                    control,
                    stdin=None,
                    output=output.fileno(),
                    turn=turn,
                    interrupted_s=interrupted_s,
                ) as target,
            ):
                try:
                    outcome = target.follow(say, cancelled or threading.Event(), lambda: None)
                except Problem as problem:
                    so_far = _read(folder) if sliced and problem.status == 130 else None
                    if so_far is None:
                        raise
                    return so_far
            found = _read(folder) if outcome.ready or (sliced and outcome.clean) else None
            if found is not None:
                return found
            if not outcome.clean:
                raise target.failure(outcome)
            if sliced:
                raise Problem(f"{Path(request.target).name} ended before its last slice", 1)
            # The word that it waited for has been read; there is no second one.
            turn = None
            purpose, shorter, _ = second_try(request, outcome)
            if purpose is Purpose.WHOLE and request.loop is not None:
                # The whole is no step: a ratio to the turns of the unedited script would mean nothing.
                raise Problem(f"the loop at {request.loop.place} did not run in the edited script", 1)
            if purpose is Purpose.WHOLE:
                return Timing((outcome.whole_ns,), step_source="whole")
            windows = only_timed(shorter)
            if on_again is not None:
                on_again(windows)
        raise Problem(f"{Path(request.target).name} made fewer steps in its second run", 1)


def _read(folder: Path) -> Timing | None:
    """What the runner wrote, by rename; None before its first slice."""
    import msgspec

    path = folder / timing.NAME
    return msgspec.json.decode(path.read_bytes(), type=Timing) if path.exists() else None
