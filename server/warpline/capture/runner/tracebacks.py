"""Prints the script's traceback without our frames."""

from __future__ import annotations

import os
import sys
from types import TracebackType

_HERE = os.path.dirname(os.path.abspath(__file__))


def show_and_silence(error: BaseException) -> None:
    """Print ``error`` by whatever hook the script left, without our frames; the interpreter, which
    still sees the exception and ends accordingly, then prints nothing more."""
    without_ours(error)
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stderr.flush()
        sys.excepthook = _nothing


def without_ours(error: BaseException | None, seen: set[int] | None = None) -> None:
    """Take the frames of this folder out of the traceback of ``error`` and of its causes."""
    seen = set() if seen is None else seen
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _filtered(error.__traceback__)
    without_ours(error.__cause__, seen)
    without_ours(error.__context__, seen)


def is_ours(filename: str) -> bool:
    """Whether a file belongs to the runner."""
    return filename.startswith(_HERE)


def _filtered(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and is_ours(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    if traceback is not None:
        traceback.tb_next = _filtered(traceback.tb_next)
    return traceback


def _nothing(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    pass
