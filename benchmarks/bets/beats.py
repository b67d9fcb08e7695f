"""``python beats.py SECONDS SCRIPT ARGS...``: runs SCRIPT; prints how long a turn of its loop takes.

No Warpline. It is for scripts that train, for scripts that only infer, and for scripts that replay CUDA
graphs. It imports torch and what SCRIPT imports from outside its folder, then waits for a line on standard
input: the processors to run on ("0,1,2", or nothing). With ``BEATS_HOLD=device`` in the environment it waits
where SCRIPT first uses the GPU, so its data are made while another one is timed; with ``BEATS_HOLD=beats``
after the first beats of a script that trains, so that it compiles meanwhile. Then it makes the file
``BEATS_READY`` when it begins to wait. ``BEATS_THREADS`` is the number of processors that it will have then:
code that was compiled with another number of threads would be compiled again (torch guards on it). SCRIPT's
own standard input is empty.

A beat is one turn of the loop. In a script that trains it is the return of an optimizer's ``step``, or, where
no optimizer steps, of ``backward``; where the whole step is replayed as a CUDA graph, the replay. In a script
that does neither it is a line of SCRIPT that runs again and again: of the lines that a sampler sees on the
stack the outermost one that repeats for most of the time (this needs Python 3.12). Each beat notes the host's
clock and records an event on the device, so nothing is waited for while the script runs.

The first quarter of the beats, and at least three, are passed over. The result is one line of JSON on
standard error:

``kind``      optimizer, backward, replay or line
``line``      the text of the line, where ``kind`` is that
``beats``     how many there were
``ms``        mean time of a beat after those passed over, by the device's events where there are any
``median_ms`` the median of the same
``loop_ms``   mean time of all beats after the first: with what is compiled or tuned on the way
``setup_s``   from the line on standard input (or SCRIPT's start, if later) to the first beat
``cut``       the script was ended after SECONDS of beats: ``beats`` is not all that it would make
``peak_bytes`` most that torch held on the device
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import linecache
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, TextIO

#: Beats passed over at least, and beats that a mean needs.
FIRST, FEWEST = 3, 4
#: A line's beats are the loop's where they span so much of the longest span.
SPANS = 0.8
#: Replays are the loop's where they span so many times what an optimizer's steps do.
LONGER = 1.5
#: After so many beats no more device events are made: the host's clock is enough for very short steps.
MOST_EVENTS = 20_000
#: The stack is looked at so often.
LOOK_S = 0.01
#: A line that has not run for so long, and for three of its turns, is no longer the loop's.
STILL_S = 0.3
#: Our number among the tools that use ``sys.monitoring``.
TOOL = 4


class Beats:
    """The beats of one kind. ``events`` has the device's, as long as there is one for each."""

    def __init__(self, kind: str, depth: int = 0) -> None:
        self.kind, self.depth = kind, depth
        self.at: list[float] = []
        self.events: list[Any] = []

    def beat(self) -> None:
        import torch

        if len(self.at) == len(self.events) < MOST_EVENTS and torch.cuda.is_initialized():
            if torch.cuda.is_current_stream_capturing():
                return
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.events.append(event)
        self.at.append(time.perf_counter())

    @property
    def span(self) -> float:
        return self.at[-1] - self.at[0] if self.at else 0.0

    def times(self) -> list[float]:
        """Of each beat, in milliseconds since the first. The device is waited for."""
        if len(self.events) == len(self.at):
            return [self.events[0].elapsed_time(one) for one in self.events]
        return [1e3 * (one - self.at[0]) for one in self.at]


class Clock:
    def __init__(self, seconds: float, script: Path) -> None:
        self.seconds, self.script = seconds, str(script)
        self.began = 0.0
        self.optimizer, self.backward = Beats("optimizer"), Beats("backward")
        self.replay = Beats("replay")
        self.lines: dict[tuple[Any, int], Beats] = {}
        self.told = threading.Lock()
        self.wait: Callable[[], None] | None = None  # before the beats that count

    def trained(self, kind: Beats) -> None:
        best = self.optimizer if len(self.optimizer.at) >= FEWEST else kind
        if kind is not best:
            return
        if self.wait is not None and len(kind.at) == FEWEST:
            self.wait()
            self.wait = None
            for each in (self.optimizer, self.backward):
                each.at.clear()
                each.events.clear()
        kind.beat()
        if best.span > self.seconds and len(best.at) > 2 * FEWEST:
            self.end(cut=True)

    def replayed(self) -> None:
        """A graph was replayed, which may be the whole step."""
        self.replay.beat()
        others = LONGER * max(self.optimizer.span, self.backward.span)
        if self.training and self.replay.span > max(self.seconds, others):
            self.end(cut=True)

    def passed(self, key: tuple[Any, int]) -> None:
        """A line that was seen on the stack runs again."""
        one = self.lines[key]
        one.beat()
        if one.span > self.seconds and (chosen := self.loop()) and len(chosen.at) > 2 * FEWEST:
            self.end(cut=True)

    @property
    def training(self) -> bool:
        return bool(self.optimizer.at or self.backward.at)

    def running(self) -> Beats | None:
        """The outermost line that has repeated often enough, and still does."""
        now = time.perf_counter()
        some = [one for one in list(self.lines.values()) if len(one.at) > 2 * FEWEST]
        some = [one for one in some if now - one.at[-1] < max(STILL_S, 3 * one.span / len(one.at))]
        return min(some, key=lambda one: one.depth, default=None)

    def loop(self) -> Beats | None:
        every = list(self.lines.values())  # the thread that looks adds to them
        longest = max((one.span for one in every), default=0.0)
        fit = [one for one in every if one.span >= SPANS * longest and len(one.at) >= FEWEST]
        enough = [one for one in fit if len(one.at) > 2 * FEWEST]
        return min(enough or fit, key=lambda one: one.depth, default=None)

    def end(self, *, cut: bool) -> None:
        if not self.told.acquire(blocking=False):
            return
        import torch

        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0
        trained = [one for one in (self.optimizer, self.backward) if len(one.at) >= FEWEST]
        chosen = trained[0] if trained else self.loop()
        # An optimizer that stepped before the graph was captured, and only then.
        if trained and len(self.replay.at) >= FEWEST and self.replay.span > LONGER * trained[0].span:
            chosen = self.replay
        found: dict[str, Any] = {"beats": 0, "cut": cut, "peak_bytes": peak}
        if chosen is not None:
            at = chosen.times()
            skip = min(max(FIRST, len(at) // 4), len(at) - 2)
            each = [b - a for a, b in zip(at[skip:], at[skip + 1 :], strict=False)]
            found |= {"kind": chosen.kind, "beats": len(at), "ms": sum(each) / len(each)}
            found |= {"median_ms": median(each), "loop_ms": (at[-1] - at[0]) / (len(at) - 1)}
            found["setup_s"] = chosen.at[0] - self.began
            number = next((key[1] for key, one in list(self.lines.items()) if one is chosen), None)
            found["line"] = linecache.getline(self.script, number).strip() if number else ""
        print(json.dumps(found), file=sys.stderr, flush=True)
        os._exit(0)


def watch_training(clock: Clock) -> None:
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(lambda *_: clock.trained(clock.optimizer))
    plain = torch.autograd.backward

    def backward(*args: Any, **kwargs: Any) -> None:
        plain(*args, **kwargs)
        clock.trained(clock.backward)

    torch.autograd.backward = backward  # Tensor.backward looks it up there
    again = torch.cuda.CUDAGraph.replay

    def replay(graph: Any) -> None:
        again(graph)
        clock.replayed()

    torch.cuda.CUDAGraph.replay = replay  # type: ignore[method-assign]


def watch_lines(clock: Clock) -> None:
    """Counts how often the script's lines run that were seen on a thread's stack, every ``LOOK_S``.

    Only those lines have an event, so the others run as fast as ever, compiled code included.
    """
    monitoring = sys.monitoring
    codes: dict[Any, set[int]] = {}

    def line(code: Any, number: int) -> Any:
        if number not in codes.get(code, ()):
            return monitoring.DISABLE
        clock.passed((code, number))
        return None

    def look() -> None:
        mine = threading.get_ident()
        while not clock.training:
            for thread, top in sys._current_frames().items():
                frame: FrameType | None = top if thread != mine else None
                stack = []
                while frame is not None:
                    if frame.f_code.co_filename == clock.script:
                        stack.append((frame.f_code, frame.f_lineno))
                    frame = frame.f_back
                known = clock.running()
                for depth, (code, number) in enumerate(reversed(stack)):
                    if known is not None and depth >= known.depth:
                        break
                    if number is not None and number not in codes.setdefault(code, set()):
                        clock.lines.setdefault((code, number), Beats("line", depth))
                        codes[code].add(number)
                        monitoring.set_local_events(TOOL, code, monitoring.events.LINE)
                        monitoring.restart_events()  # its lines may have been passed over before
                if known is not None:  # what is inside its turns says no more, and costs time
                    for (code, number), one in list(clock.lines.items()):
                        if one is not known and one.depth >= known.depth:
                            codes.get(code, set()).discard(number)
            time.sleep(LOOK_S)

    monitoring.use_tool_id(TOOL, "beats")
    monitoring.register_callback(TOOL, monitoring.events.LINE, line)
    threading.Thread(target=look, daemon=True).start()


def trains(tree: ast.Module) -> bool:
    """The script calls ``backward`` or ``grad``, as far as its text says."""
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(isinstance(one, ast.Attribute) and one.attr in {"backward", "grad"} for one in called)


def import_ahead(tree: ast.Module, folder: Path) -> None:
    """What the script will import from elsewhere: it is no part of what is timed."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        for name in names:
            first = name.split(".")[0]
            if not (folder / first).exists() and not (folder / f"{first}.py").exists():
                with contextlib.suppress(Exception):  # the script will say so itself
                    importlib.import_module(name)


def moved(cores: str) -> None:
    """Puts this process and its children on ``cores``, with as many threads for an operator as there are
    cores."""
    import torch

    if cores:
        wanted = {int(core) for core in cores.split(",")}
        for task in tasks(os.getpid()):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(task, wanted)
        if "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(len(wanted))


def tasks(pid: int) -> Iterator[int]:
    """The threads of a process and of all its children, such as a loader's workers."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield int(task.name)
            for child in (task / "children").read_text().split():
                yield from tasks(int(child))


def hold(clock: Clock, orders: TextIO, at: str) -> None:
    """Has the script wait for its turn ``at`` its first beats, or where CUDA would be initialized (torch does
    that in one place)."""
    import torch

    plain, owner = torch.cuda._lazy_init, os.getpid()
    waiting = threading.Lock()

    def wait() -> None:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        with contextlib.suppress(KeyError):
            Path(os.environ["BEATS_READY"]).touch()
        moved(orders.readline().strip())
        orders.close()
        clock.began = time.perf_counter()

    def wait_first() -> None:
        with waiting:
            if os.getpid() == owner and not orders.closed:
                wait()
        plain()

    if at == "beats":
        torch.set_num_threads(int(os.environ.get("BEATS_THREADS", torch.get_num_threads())))
        clock.wait = wait
    else:
        torch.cuda._lazy_init = wait_first  # type: ignore[assignment]


def main() -> None:
    script = Path(sys.argv[2]).resolve()
    clock = Clock(float(sys.argv[1]), script)
    sys.argv = [str(script), *sys.argv[3:]]
    sys.path[0] = str(script.parent)
    import torch  # noqa: F401

    tree = ast.parse(script.read_text(encoding="utf-8"))
    import_ahead(tree, script.parent)
    orders = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if at := os.environ.get("BEATS_HOLD"):
        hold(clock, orders, at if trains(tree) else "device")
    else:
        moved(orders.readline().strip())
    watch_training(clock)
    if not trains(tree) and sys.version_info >= (3, 12):
        watch_lines(clock)
    clock.began = time.perf_counter()
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit:
        clock.end(cut=False)
    clock.end(cut=False)


if __name__ == "__main__":
    main()
