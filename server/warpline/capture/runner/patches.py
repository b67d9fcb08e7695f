"""Replaces attributes temporarily."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


class Patches:
    def __init__(self) -> None:
        self.saved: list[tuple[Any, str, Any, Any]] = []

    def replace(
        self, owner: Any, name: str, make: Callable[[Function], Function], inherited: bool = False
    ) -> None:
        """``owner.name = make(original)``; nothing happens where this torch has no such attribute.

        ``inherited``: the original may come from a base class.
        """
        original = vars(owner).get(name)
        found = getattr(owner, name, None) if original is None and inherited else original
        if found is None:
            return
        bound = isinstance(found, (staticmethod, classmethod))
        plain = found.__func__ if bound else found
        made: Any = functools.wraps(plain)(make(plain))
        if bound:
            made = type(found)(made)
        self.saved.append((owner, name, original, made))
        setattr(owner, name, made)

    def restore(self) -> None:
        """Put the originals back, except where other code has replaced ours since."""
        while self.saved:
            owner, name, original, made = self.saved.pop()
            if vars(owner).get(name) is not made:
                continue
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
