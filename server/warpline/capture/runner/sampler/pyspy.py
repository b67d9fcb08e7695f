"""Samples this process with py-spy, for interpreters in which ``layout`` does not find the frames."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from ....wire.samples import RATE, py_spy, stacks
from .child import START_S, Child

if TYPE_CHECKING:
    from ..lines.userfiles import UserFiles


class PySpy(Child):
    """Raises OSError when it cannot be started or may not look."""

    end_by = signal.SIGINT

    def __init__(self, program: str, path: str) -> None:
        """``program``: py-spy's; ``path``: of the file that it is to write."""
        self.path = path
        self.rows: list[str] = []
        self.pthread = threading.get_ident()
        super().__init__(py_spy(program, os.getpid(), RATE, path))
        self.begin(b"", b"Sampling process", START_S)

    def stop(self) -> None:
        """End py-spy, read what it wrote and remove its file."""
        super().stop()
        with contextlib.suppress(OSError):
            with open(self.path, encoding="utf-8", errors="replace") as file:
                self.rows = file.readlines()
            os.unlink(self.path)

    def found(self, user_files: UserFiles, codes: Sequence[CodeType]) -> dict[str, Any]:
        """``Samples``, as a dict: the innermost line of the user's in each stack of the driving thread.
        Raises OSError where it saw nothing. ``codes`` are not needed."""
        if not self.rows:
            raise OSError("it wrote no samples")
        lines: Counter[tuple[str, int]] = Counter()
        total = 0
        # Before Python 3.11 it knows only what pthread calls the thread, unless it stops the script.
        mine = ("thread (%d): " % self.thread, "thread (0x%X): " % self.pthread)
        for stack, places, count in stacks(self.rows):
            if not stack.startswith(mine):
                continue
            total += count
            for file_name, line in places:
                path = user_files[file_name]
                if path is not None:
                    lines[path, line] += count
                    break
        if not total:
            raise OSError("none of its samples is of the thread that makes the steps")
        return {"total": total, "lines": [(file, line, count) for (file, line), count in lines.items()]}
