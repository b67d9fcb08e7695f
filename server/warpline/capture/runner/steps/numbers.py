"""Numbers for the objects whose signals may mark steps."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Any

FORGOTTEN = 64  # of so many objects heard in turn none is known to come again


def _never() -> None:
    """Stands for the weak reference to an object that was never heard."""


class Numbers:
    """A number for each object. One that is gone leaves it to the next of its class, because a script may
    make an optimizer for each task, or a model in each step.

    Some are gone only when garbage is collected. So if none of many of a class came again after another,
    those that follow share one number.
    """

    def __init__(self) -> None:
        self.left = False  # a number was left to another object
        self._new = itertools.count()
        self._known: dict[int, tuple[Callable[[], Any], int]] = {}  # by id: a weak reference, and the number
        self._classes: dict[tuple[str, str], _Class] = {}  # by name: the class may be made again, too

    def of(self, one: Any) -> int:
        """The number of ``one``; a new one if it was never heard."""
        name = type(one).__module__, type(one).__qualname__
        kind = self._classes.get(name)
        if kind is None:
            kind = self._classes[name] = _Class(next(self._new))
        number = self.known(one)
        if number is None:
            number = self._next(one, kind)
        elif number != kind.latest:
            kind.again = True
        kind.latest = number
        return number

    def known(self, one: Any) -> int | None:
        """Its number; None if it has none of its own."""
        reference, number = self._known.get(id(one), (_never, 0))
        return number if reference() is one else None

    def holder(self, number: int | None) -> Any:
        """The object that has ``number``; None if it is gone."""
        held = (reference() for reference, other in self._known.values() if other == number)
        return next((one for one in held if one is not None), None)

    def _next(self, one: Any, kind: _Class) -> int:
        kind.heard += 1
        if kind.heard > FORGOTTEN and not kind.again:
            self.left = True
            return kind.first
        self.left |= kind.heard > 1 and bool(kind.free)
        number = heappop(kind.free) if kind.free else next(self._new)
        self._known[id(one)] = weakref.ref(one, partial(_leave, kind.free, number)), number
        return number


class _Class:
    """Objects of one class. ``first``: the number of the first of them."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.free = [first]  # a heap of numbers that none has
        self.heard = 0  # how many objects there were
        self.latest: int | None = None  # the number that was heard last
        self.again = False  # an object came again after another


def _leave(free: list[int], number: int, gone: Any) -> None:
    heappush(free, number)
