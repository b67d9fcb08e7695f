"""Has a worker that is spawned, or forked by a fork server, record its lines as one that is forked from us.

Stands alone: such a worker runs this file when it unpickles what its process is to do (``runpy.run_path``,
with ``MAIN`` set), before it knows the package that it is in.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import sys
import types
from operator import getitem
from typing import Any


class Followed:
    """Stands for torch's ``_worker_loop``. A forked worker calls it; for others it is pickled."""

    def __init__(self, main: Any, original: Any) -> None:
        self.main = main
        self.original = original

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        with contextlib.suppress(Exception):  # an unknown version of torch: no lines are recorded
            self.main.follow()
        return self.original(*arguments, **named)

    def __reduce__(self) -> Any:
        try:
            told = self.main.told()
        except OSError:  # no folder to share anything in
            return self.original.__name__  # torch's own, as it would be without us
        return getitem, (_Run({"MAIN": told}), "worker_loop")


class _Run:
    """Unpickled it is what this file defines, run with ``given``."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given

    def __reduce__(self) -> Any:
        return runpy.run_path, (os.path.abspath(__file__), self.given)


def worker_loop(*arguments: Any, **named: Any) -> Any:
    """What a spawned worker calls: torch's own loop, whose batches are watched."""
    from torch.utils.data._utils import worker

    with contextlib.suppress(Exception):  # as above: no lines are recorded
        _package().WorkerLines.of(globals()["MAIN"]).follow()
    return worker._worker_loop(*arguments, **named)


def _package() -> Any:
    """The module ``lines`` beside this file, under the private name that the main process has it under."""
    runner = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    capture = os.path.dirname(runner)
    for name, folder in (("_warpline", os.path.dirname(capture)), ("_warpline.capture", capture)):
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [folder]
            sys.modules[name] = package
    return importlib.import_module("_warpline.capture.runner.workers.lines")
