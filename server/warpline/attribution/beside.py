"""Work on a thread of its own: numpy lets go of the interpreter's lock while it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Submit(Protocol):
    def __call__(self, work: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> Future[T]:
        """Has ``work`` done; its result is asked for later."""


@contextmanager
def beside() -> Iterator[Submit]:
    """One thread, for the length of the block. While Python ends (in ``atexit``), it starts none: then the
    work is done at once."""
    with ThreadPoolExecutor(1, "warpline-attributing") as pool:

        def submit(work: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> Future[T]:
            try:
                return pool.submit(work, *args, **named)
            except RuntimeError:
                found = Future[T]()
                found.set_result(work(*args, **named))
                return found

        yield submit
