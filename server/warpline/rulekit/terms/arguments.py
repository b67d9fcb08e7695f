"""Arguments of a call by the names of its signature, and constants among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warpline.rulekit.terms.term import Term


class Arguments:
    """Positional and keyword arguments by the names of a signature."""

    def __init__(self, names: str, args: Sequence[Term], keywords: Mapping[str, Term]) -> None:
        order = names.split()
        self.ok = len(args) <= len(order) and all(key in order for key in keywords)
        self.by_name = {**dict(zip(order, args, strict=False)), **keywords}

    def __getitem__(self, name: str) -> Term:
        return self.by_name[name]

    def get(self, *names: str) -> Term | None:
        """The first of these arguments that the call has, by any of its names; else None."""
        return next((self.by_name[name] for name in names if name in self.by_name), None)


def static(term: Term | None) -> Any:
    """The Python value of a constant or a tuple of constants; Ellipsis when there is none."""
    if term is None:
        return None
    if term.op == "const":
        return term.value
    if term.op == "tuple":
        values = tuple(static(arg) for arg in term.args)
        return ... if ... in values else values
    return ...


def dims(term: Term | None) -> tuple[int, ...] | None:
    """``-1`` and ``(-1,)`` -> ``(-1,)``; None for all dimensions. Raises ValueError when not constant."""
    value = static(term)
    if value is None:
        return None
    if isinstance(value, int):
        return (value,)
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        return value
    raise ValueError("not constant")
