"""The console that everything is printed through."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console

#: Where there is no terminal to ask: wide enough for a costed line of code, narrow enough for a mail.
_PIPE_WIDTH = 110


def console(file: TextIO | None = None) -> Console:
    """A console for ``file`` (standard output if None). Piped, it has no colours, and is
    ``_PIPE_WIDTH`` columns wide unless ``COLUMNS`` says otherwise."""
    file = file or sys.stdout
    if isinstance(file, io.TextIOWrapper):
        # A terminal that cannot show a letter gets a question mark, not a crash.
        file.reconfigure(errors="replace")
    made = Console(file=file, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _PIPE_WIDTH
    return made


@contextmanager
def paged() -> Iterator[Console]:
    """A console for one page of output; what is piped loses the blanks that rich fills lines up with."""
    out = console()
    if out.is_terminal:
        yield out
        return
    with out.capture() as printed:
        yield out
    out.file.write("".join(f"{line.rstrip()}\n" for line in printed.get().split("\n")[:-1]))
