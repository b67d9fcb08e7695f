"""A session in the user's own process: it never ends the process, never raises and removes all its hooks.

Elsewhere a script is started in order to be measured, and ended afterwards. Here the process is the user's
and goes on. Two functions remain, which do nothing afterwards: that for forks, because Python cannot
unregister it, and that for optimizers' steps (``Optimizers`` says why).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Mapping

from ...wire import control as wire
from ...wire.messages import Failed, Message, Ready
from . import imports
from .control import Control
from .pipe import Pipe
from .sampler.child import END_S
from .session import Session
from .texts import Texts
from .windows.sampling import LastSampling
from .windows.stages import Stage
from .windows.trend import Watching

UNSEEN = (
    "only what ran inside the profiled block was watched: loaders, optimizers and settings made before it "
    "are not known, so that findings about them are missing or without an edit (`warpline profile` sees them)"
)
ENDING_S = END_S + 30.0  # for the window that ends in a thread of its own to be written

#: The session of this process, if there is one.
_current: list[Resident] = []


class Told(Pipe):
    """Keeps the messages that would go to the server."""

    def __init__(self, on_ready: Callable[[], None]) -> None:
        super().__init__("", 0)
        self.on_ready = on_ready
        self.ready = False
        self.problem = ""
        self.settled = threading.Event()  # the run is written, or never will be

    def send(self, message: Message) -> None:
        if isinstance(message, Ready):
            self.on_ready()
            self.ready = True
            self.settled.set()
        elif isinstance(message, Failed):
            self.problem = message.message
            self.settled.set()


class Resident(Session):
    """Call ``start``, then ``mark`` at each step's end if the user marks the steps, then ``close``."""

    pipe: Told

    def __init__(
        self,
        control: wire.Control,
        script: str,
        cells: Mapping[str, str],
        on_ready: Callable[[], None],
    ) -> None:
        """``script``: the absolute path that the run is filed under. ``cells``: the path of each cell's own
        file by the name that its code has. ``on_ready()``: once the run is written."""
        super().__init__(
            Control(control, []), Told(on_ready), Texts(control.request.include, control.overlay)
        )
        self.texts.since_process_start()
        self.cells = cells
        self._script = script
        self.closed = False

    def start(self) -> None:
        """Listen from now on. Raises what torch raises where it cannot be imported; nothing is left then."""
        try:
            self._start()
        except BaseException:
            self._undo_start()
            raise

    def _start(self) -> None:
        torch = importlib.import_module("torch")
        _watch_forks()
        _current.append(self)
        self.before.executed.why = "lines before the profiled block were not recorded"
        self.before.user_files.update(self.cells)
        self.before.start()
        self.torch_is_here(torch)
        self.before.user_files.update(self.cells)  # wider roots have made it forget
        self.notes.append(UNSEEN)
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is not None and dynamo.counters.get("frames"):
            self.steps.compiling()  # a global hook would have it compiled again

    def _undo_start(self) -> None:
        """Remove the hooks that were installed before the start failed."""
        self.closed = True
        _current.clear()
        undo = [self.texts.stop, self.before.remove, self.own_profiler.remove, imports.stop_waiting]
        for name, method in (("steps", "remove"), ("observers", "remove"), ("threads", "stop")):
            if hasattr(self, name):
                undo.append(getattr(getattr(self, name), method))
        for one in undo:
            with contextlib.suppress(Exception):
                one()

    def script(self) -> str:
        """The path that the report names as the script."""
        return self._script

    def mark(self) -> None:
        """A step ends here."""
        if not self.closed:
            self.steps.marks.mark()

    def close(self, failed: bool) -> None:
        """End the block; ``failed``: an exception ended it."""
        if self.closed:
            return
        try:
            self._finish(failed)
        finally:
            self.closed = True
            _current.clear()
            if isinstance(self.stage, Watching):
                self.steps.remove()
                os.close(self.stage.folder)
            if not self.pipe.settled.is_set():
                self._withdraw()

    def _finish(self, failed: bool) -> None:
        if self.pipe.settled.is_set():
            self.stage.ended()  # where it was watched after the capture
            return
        if not failed or self.stage.complete:
            self.stage.ended()
        if isinstance(self.stage, LastSampling):  # its deadline came first, and writes the run at this moment
            self.pipe.settled.wait(ENDING_S)

    def _withdraw(self) -> None:
        """Stop measuring and remove every hook."""
        stage, self.stage = self.stage, Stage(self)
        try:
            stage.abandon()
        except Exception:  # the user's program goes on, whatever it was
            pass
        self._take_hands_off()

    def _give_up(self, message: str, status: int) -> None:
        self.pipe.send(Failed(message.partition("\n")[0], status))
        self._withdraw()

    def tries_samples(self) -> bool:
        """No: the user's program goes on, and a forked child would move the positions of its open files."""
        return False

    def _stop(self) -> None:
        """Do nothing: the user's program goes on."""


@functools.lru_cache(None)
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    while _current:
        _current.pop().forget()
