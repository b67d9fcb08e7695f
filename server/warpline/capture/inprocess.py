"""Measures the steps of a block in the user's own process, which continues afterwards."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.capture import probe
from warpline.capture.again import shared_out
from warpline.capture.launch import reason, remove_abandoned
from warpline.capture.runner.lines.userfiles import INSTALLED
from warpline.model.problem import Problem
from warpline.wire.control import Control, Purpose, Windows
from warpline.wire.run import Request

if TYPE_CHECKING:
    from warpline.capture.runner.resident import Resident

#: Steps of a block that pass before measuring begins: a beat must be heard twice before it is chosen. Outside
#: the main thread, recording starts again for all threads, which takes two more.
PASSED, PASSED_IN_THREAD = 2, 4
#: The fewest steps after that. With fewer, the first recorded step, which is slow, would have to count.
LEAST = 4
_busy = threading.Lock()


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a notebook: ``files`` maps the file name in a cell's code objects to the file
    written for it, ``texts`` maps that file to its text."""

    files: Mapping[str, str]
    texts: Mapping[str, str]


class InProcess:
    """Call ``start``, then ``stop``. One block at a time. Only methods that say so raise Problem."""

    def __init__(
        self, request: Request, script: str, destination: Path, few: int | None, cells: Cells
    ) -> None:
        """``script``: the file that the run is named after. ``few``: how many steps the block makes, if that
        is too few for the usual windows. Raises Problem (status 2) if it is too few for any."""
        self.request = request
        self.script = script
        self.destination = destination
        self.cells = cells
        self.pid = os.getpid()
        self.partial = destination.with_name(f".{destination.name}.{self.pid}.partial")
        self.windows = Windows(
            request.warmup, captured=max(1, request.steps), sampler=probe.sampler(), sampled_last=True
        )
        main = threading.current_thread() is threading.main_thread()
        passed = PASSED if main else PASSED_IN_THREAD
        self.few, self.least = few, passed + LEAST
        if few is not None:
            if few < self.least:
                raise Problem(f"few={few}: a block needs at least {self.least} steps")
            self.windows = replace(shared_out(few - passed, request.steps), muted=False)
        self.resident: Resident | None = None

    def start(self) -> None:
        """Start measuring. Raises Problem if this process cannot be measured."""
        _check()
        if not _busy.acquire(blocking=False):
            raise Problem("another block of this process is being profiled")
        try:
            self._start()
        except BaseException:
            _busy.release()
            shutil.rmtree(self.partial, ignore_errors=True)
            raise

    def _start(self) -> None:
        from warpline.capture.runner.resident import Resident

        remove_abandoned(self.destination.parent)
        try:
            self.partial.mkdir(parents=True)
        except OSError as error:
            raise Problem(f"cannot write to {self.destination.parent}: {reason(error)}") from None
        overlay = dict(self.cells.texts)
        control = Control(self.request, Purpose.PROFILE, str(self.partial), "", self.windows, overlay=overlay)
        self.resident = Resident(control, self.script, self.cells.files, self._ready)
        self.resident.start()

    def _ready(self) -> None:
        self.partial.rename(self.destination)

    def mark(self) -> None:
        """A step ends here."""
        if self.resident is not None:
            self.resident.mark()

    def stop(self, failed: bool) -> None:
        """End the block; ``failed``: an exception ended it.

        Raises Problem (status 1) if nothing was measured."""
        resident = self.resident
        if resident is None or os.getpid() != self.pid:  # a forked child: the folder is its parent's
            return
        try:
            resident.close(failed)
        finally:
            self.resident = None
            _busy.release()
            shutil.rmtree(self.partial, ignore_errors=True)
        if resident.pipe.ready:
            return
        if resident.pipe.problem:
            raise Problem(resident.pipe.problem, 1)
        steps = resident.boundaries + resident.missed
        if not steps:
            raise Problem("no step was found in the block: call step() at the end of each step", 1)
        made = "1 step" if steps == 1 else f"{steps} steps"
        helps = f"it needs {self.least} at least"
        if steps >= self.least and (self.few is None or steps < self.few):
            helps = f"run more steps, or say how many there are (few={steps})"
        raise Problem(f"the block ended after {made}, before they were measured: {helps}", 1)


def script_of(file: str) -> tuple[str, str]:
    """``(file, module)`` of ``__main__``; the module is "" unless it runs under ``python -m``. If
    ``__main__`` is not the user's script (a notebook, pytest), the file is ``file``, which has the block."""
    main = sys.modules["__main__"]
    path, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if not path or not path.endswith(".py") or INSTALLED.search(os.path.abspath(path)):
        return os.path.abspath(file), ""
    return os.path.abspath(path), spec.name.removesuffix(".__main__") if spec is not None else ""


def _check() -> None:
    """Raises Problem if this process cannot be measured from within."""
    if "_warpline.capture" in sys.modules:
        raise Problem("this process is already measured by `warpline profile`", 0)
    if importlib.util.find_spec("torch") is None:
        raise Problem(f"{sys.executable} has no torch: install torch there")
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        raise Problem("a block cannot measure several ranks: use warpline profile --launcher 'torchrun …'")
    if sys.platform == "win32":
        raise Problem("Warpline works on Linux and macOS only")
