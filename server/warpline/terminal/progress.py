"""How far a profile has come: a bar on a terminal, JSON lines through a pipe, nothing otherwise."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TextIO

from warpline.capture.progress import Progress
from warpline.model.problem import Problem

_BAR = 20


@contextmanager
def shown(descriptor: int | None = None) -> Iterator[Callable[[Progress], None]]:
    """What to call with each Progress.

    With ``descriptor`` each is written there as one line of JSON. Raises Problem when it is not open.
    """
    if descriptor is not None:
        yield _written(descriptor)
    elif sys.stderr.isatty():
        yield lambda progress: _draw(progress, sys.stderr)
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
    else:
        yield lambda progress: None


def _written(descriptor: int) -> Callable[[Progress], None]:
    try:
        os.fstat(descriptor)
    except OSError:
        raise Problem(f"--progress-fd {descriptor} is not open") from None

    def write(progress: Progress) -> None:
        try:
            os.write(descriptor, json.dumps(asdict(progress)).encode() + b"\n")
        except OSError:
            return  # whoever asked has gone; the profile goes on

    return write


def _draw(progress: Progress, out: TextIO) -> None:
    """One line, and the cursor back at its start: what the script prints writes over it."""
    bar = ""
    if progress.total:
        done = min(progress.done, progress.total) * _BAR // progress.total
        bar = "━" * done + "·" * (_BAR - done) + " "
    line = f"{bar}{progress.message}"[: shutil.get_terminal_size().columns - 1]
    out.write(f"\r\x1b[K\x1b[2m{line}\x1b[0m\r")
    out.flush()
