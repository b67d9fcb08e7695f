"""Times the steps of a script without the profiler; its sources may be edited in memory."""

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
    """Run the script with ``overlay`` ({path: text}) in place of its sources, and time a window of steps.

    No file is changed. The script's output is discarded.

    - ``request.warmup`` and ``steps``: lengths of the windows in steps (None: the runner chooses).
      ``request.timeout_s`` limits each run. ``seed``: for torch, random and numpy, set when they are
      imported (None: not set).
    - A script that ends before its windows are complete is run once more, with windows that fit its steps.
      ``on_again`` is called with these windows. Passed as ``windows``, they save the same script that second
      run.
    - ``turn``: after importing torch, the script waits for it, and ``timeout_s`` starts again. A second run
      does not wait.
    - ``sliced``: the script is also stopped before every ``steps`` steps, until its next turn. There is no
      second run. If the script ends without an error or is cancelled, the slices so far are the result.
    - ``interrupted_s``: seconds the script may take to end by itself when it is cancelled.

    Raises Problem: status 1 if the script failed, hung or made too few steps, 130 if ``cancelled`` was set.
    On return or error the whole process tree has ended.
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
            # The script has already read its turn from the FIFO; the second run must not wait for another.
            turn = None
            purpose, shorter, _ = second_try(request, outcome)
            if purpose is Purpose.WHOLE and request.loop is not None:
                # A whole script is not a step: its ratio to an iteration of the plain script means nothing.
                raise Problem(f"the loop at {request.loop.place} did not run in the edited script", 1)
            if purpose is Purpose.WHOLE:
                return Timing((outcome.whole_ns,), step_source="whole")
            windows = only_timed(shorter)
            if on_again is not None:
                on_again(windows)
        raise Problem(f"{Path(request.target).name} made fewer steps in its second run", 1)


def _read(folder: Path) -> Timing | None:
    """The result that the runner wrote so far; None before its first slice."""
    import msgspec

    path = folder / timing.NAME
    return msgspec.json.decode(path.read_bytes(), type=Timing) if path.exists() else None
