"""Signals while a target runs: none may get lost between its start and the point where it is sure to be
ended."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Ctrl-C inside the block is acted on after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    came: list[int] = []
    if not callable(before):  # ignored, as for a background job, or not Python's
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextlib.contextmanager
def end_like_interrupt() -> Iterator[None]:
    """A polite request to end (SIGTERM, SIGHUP) is a KeyboardInterrupt inside the block, so that
    the target is ended and the unfinished run folder goes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
