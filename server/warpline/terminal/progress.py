"""How far a profile has come: a bar on a terminal, JSON lines through a pipe, nothing otherwise."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TextIO

from warpline.model.problem import Problem
from warpline.wire.messages import Progress

_BAR = 20


class Shown:
    """Where progress goes. ``update`` with each Progress, ``clear`` before anything else is printed."""

    #: The newest, in words.
    message = ""

    def update(self, progress: Progress) -> None:
        """Show how far it has come."""
        self.message = progress.message
        self._draw(progress)

    def _draw(self, progress: Progress) -> None:
        """Nowhere: standard error is a file or a pipe, which wants no bar."""

    def clear(self) -> None:
        """Nothing was drawn."""


class Bar(Shown):
    """One line, and the cursor back at its start: what the script prints writes over it."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def _draw(self, progress: Progress) -> None:
        """The bar on the terminal's last line."""
        bar = ""
        if progress.total:
            done = min(progress.done, progress.total) * _BAR // progress.total
            bar = "━" * done + "·" * (_BAR - done) + " "
        line = f"{bar}{progress.message}"[: shutil.get_terminal_size().columns - 1]
        self._write(f"\r\x1b[K\x1b[2m{line}\x1b[0m\r")

    def clear(self) -> None:
        """Remove the bar, so that the report starts on a clean line."""
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


class Lines(Shown):
    """Each as one line of JSON into a descriptor, for the program that started us."""

    def __init__(self, descriptor: int) -> None:
        """Raises Problem if the descriptor is not open."""
        try:
            os.fstat(descriptor)
        except OSError:
            raise Problem(f"--progress-fd {descriptor} is not open") from None
        self.descriptor = descriptor

    def _draw(self, progress: Progress) -> None:
        """One line of JSON (docs/contract.md)."""
        # A closed reader does not stop the profile.
        with contextlib.suppress(OSError):
            os.write(self.descriptor, json.dumps(asdict(progress)).encode() + b"\n")


@contextmanager
def shown(descriptor: int | None = None) -> Iterator[Shown]:
    """A bar on a terminal, JSON lines into ``descriptor`` when given, nothing otherwise.

    Raises Problem when ``descriptor`` is not open.
    """
    if descriptor is not None:
        made: Shown = Lines(descriptor)
    else:
        made = Bar(sys.stderr) if sys.stderr.isatty() else Shown()
    try:
        yield made
    finally:
        made.clear()
